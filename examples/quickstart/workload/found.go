package workload

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/task"
)

// uidPrefix begins the UIDs of tasks. The number of their creation follows.
const uidPrefix = "task-"

// leftover is a task whose order an earlier program has put on a node's desk.
type leftover struct {
	letter task.Letter
	node   string
}

// recall reads what an earlier program has left on the desks, and which numbers were given out. It
// forgets a task that the program had planned and not ordered.
func (w *Workload) recall() error {
	desks, err := os.ReadDir(w.options.Desks)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, desk := range desks {
		letters, err := w.desk(desk.Name()).Orders()
		if err != nil {
			return err
		}
		for _, letter := range letters {
			w.found = append(w.found, leftover{letter, desk.Name()})
			w.number = max(w.number, numberOf(letter.UID))
		}
		volumes, err := w.desk(desk.Name()).Volumes()
		if err != nil {
			return err
		}
		for _, volume := range volumes {
			w.volumes = append(w.volumes, attached(volume, desk.Name()))
		}
	}
	lives, err := ledger.Open(w.options.Ledger).Lives()
	for _, life := range lives {
		w.number = max(w.number, numberOf(life.Instance))
	}
	return err
}

func numberOf(uid string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(uid, uidPrefix)) // others have none
	return n
}

// adopt makes pods of an app from the leftovers of it.
func (w *Workload) adopt(app *App, now time.Time) {
	left := w.found[:0]
	for _, f := range w.found {
		if f.letter.Name[:max(0, strings.LastIndexByte(f.letter.Name, '-'))] != app.Name {
			left = append(left, f)
			continue
		}
		p := newPod(app, f.letter.Name, numberOf(f.letter.UID), now)
		p.node, p.given = f.node, true
		if f.letter.Told {
			p.GraceEnds = now.Add(f.letter.Grace)
		}
		w.pods = append(w.pods, p)
	}
	w.found = left
}

func attached(volume, node string) *attachment {
	return &attachment{&drain.Attachment{
		Name: volume + "-to-" + node, Volume: volume, Node: node, Attached: true,
	}}
}
