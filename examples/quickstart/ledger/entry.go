// Package ledger keeps account of processes by other means than the library:
// each process enters its own birth as its first action, and whoever waits for
// it enters its end. Accounts are made from these entries and from the process
// table alone.
package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/procid"
)

// Event is what an entry says of a process.
type Event string

// The events in the life of a process, in their order.
const (
	// Born: it runs. Nobody has asked yet whether it may.
	Born Event = "born"
	// Seated: it has the lock that makes it its machine's one process.
	Seated Event = "seated"
	// Overlap: right after that it found another one of its machine alive.
	Overlap Event = "overlap"
	// Turned: there is another process of its machine, or nobody wants it any
	// more; it ends at once.
	Turned Event = "turned away"
	// Serving: it has booted and does its work.
	Serving Event = "serving"
	// Leaving: it was told to end, and does no work any more.
	Leaving Event = "leaving"
	// Abandoned: nobody has managed it for too long; it ends by itself.
	Abandoned Event = "abandoned"
	// Ended: its parent has waited for it, or who took it over from a parent that
	// died has seen that it is gone. Note says how it ended.
	Ended Event = "ended"
)

// Entry is one line of a ledger.
type Entry struct {
	Event    Event     `json:"event"`
	Machine  string    `json:"machine"`
	Instance string    `json:"instance"` // of the machine, unique to this process
	ID       procid.ID `json:"id"`
	At       time.Time `json:"at"`
	Note     string    `json:"note,omitempty"`
}

// Append adds an entry to the ledger of that path in one write, so that entries
// of processes that write at once don't mix.
func Append(path string, e Entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}

// Read returns the entries from offset on, and the offset behind them. A ledger
// that does not exist is empty. A last line that is not whole is left for the
// next time; one that can't be read is an error.
func Read(path string, offset int64) ([]Entry, int64, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, offset, nil
	}
	if err != nil {
		return nil, offset, err
	}
	defer func() { _ = file.Close() }()
	size, err := file.Stat()
	if err != nil || size.Size() <= offset {
		return nil, offset, err
	}
	text := make([]byte, size.Size()-offset)
	n, err := file.ReadAt(text, offset)
	if n < len(text) {
		return nil, offset, err
	}
	entries, used, err := decode(text)
	if err != nil {
		err = fmt.Errorf("%s: at byte %d: %w", path, offset+int64(used), err)
	}
	return entries, offset + int64(used), err
}

// decode reads whole lines and says how many bytes they were.
func decode(text []byte) (entries []Entry, used int, err error) {
	for {
		end := bytes.IndexByte(text[used:], '\n')
		if end < 0 {
			return entries, used, nil
		}
		var e Entry
		if err := json.Unmarshal(text[used:used+end], &e); err != nil {
			return entries, used, err
		}
		entries = append(entries, e)
		used += end + 1
	}
}
