// Package ledger keeps account of processes without the library: each process enters its own birth
// as its first action, and the one that waits for it enters its end. Accounts are made from these
// entries and from the process table alone.
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

// These are the events in the life of a process, in their order.
const (
	// Born: it runs. It is not known yet whether it may.
	Born Event = "born"
	// Seated: it has the lock that makes it its machine's one process.
	Seated Event = "seated"
	// Overlap: right after that it found another one of its machine alive.
	Overlap Event = "overlap"
	// Turned: there is another process of its machine, or it is no longer wanted. It ends at once.
	Turned Event = "turned away"
	// Serving: it has booted and does its work.
	Serving Event = "serving"
	// Leaving: it was told to end, and does no work any more.
	Leaving Event = "leaving"
	// Abandoned: it was not managed for too long and ends by itself.
	Abandoned Event = "abandoned"
	// Ended: its parent has waited for it, or the program that took it over from a dead parent has
	// seen that it is gone. Note says how it ended.
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

// Append adds an entry to the ledger of that path in one write, so that entries of concurrent
// processes don't mix.
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

// Read returns the entries from offset on, and the offset behind them. A ledger that does not exist
// is empty. A partial last line is left for the next time. A line that can't be read is an error.
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

// decode reads whole lines and returns how many bytes they had.
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
