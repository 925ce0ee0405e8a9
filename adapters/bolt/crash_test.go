package bolt_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

const crashWriters = 6

// Each writer counts its steps in one object, mainOf. Another object, sideOf, exists after its odd steps
// and does not exist after the even ones.
func mainOf(writer int) object.Key {
	return object.Key{Namespace: "fleet", Name: fmt.Sprint("main", writer)}
}

func sideOf(writer int) object.Key {
	return object.Key{Namespace: "fleet", Name: fmt.Sprint("side", writer)}
}

// writeForEver is the main function of a process that writes. It prints each acknowledged write, as
// "main <writer> <step>" or "side <writer> <step>".
func writeForEver(path string) {
	say("begin")
	db, err := bolt.Open(path, bolt.Options{Now: now})
	if err != nil {
		say("open: %v", err)
		return
	}
	c, err := bolt.OpenKind(db, "object", storetest.Indexes())
	if err != nil {
		say("kind: %v", err)
		return
	}
	var all sync.WaitGroup
	for w := range crashWriters {
		all.Go(func() {
			for {
				if err := crashStep(c, w); err != nil {
					say("step: %v", err)
					return
				}
			}
		})
	}
	all.Wait()
}

// crashStep makes the next step of writer w.
func crashStep(c *objects, w int) error {
	o, err := c.Live().Get(noContext, mainOf(w))
	if errors.Is(err, store.ErrNotFound) {
		o, err = c.Create(noContext, &storetest.Object{Meta: object.Meta{Key: mainOf(w)}})
	}
	if err != nil {
		return err
	}
	step := o.Spec.Replicas + 1
	if err := crashSide(c, w, o.Spec.Replicas); err != nil { // in case a kill has interrupted the last step
		return err
	}
	o = o.Clone()
	o.Spec.Replicas = step
	if _, err := c.Update(noContext, o); err != nil {
		return err
	}
	say("main %d %d", w, step)
	if err := crashSide(c, w, step); err != nil {
		return err
	}
	say("side %d %d", w, step)
	return nil
}

// crashSide creates or deletes the side object, for a step.
func crashSide(c *objects, w int, step int64) error {
	var err error
	if step%2 == 1 {
		_, err = c.Create(noContext, &storetest.Object{Meta: object.Meta{Key: sideOf(w)}})
	} else {
		err = c.Delete(noContext, sideOf(w), "")
	}
	if errors.Is(err, store.ErrAlreadyExists) || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}

// crashLog has the last acknowledged step of each writer.
type crashLog struct{ main, side [crashWriters]int64 }

// read adds a line that the process has printed.
func (l *crashLog) read(t *testing.T, line string) {
	t.Helper()
	var what string
	var w int
	var step int64
	if line == "begin" {
		return
	}
	_, err := fmt.Sscanf(line, "%s %d %d", &what, &w, &step)
	require.NoError(t, err, line)
	switch what {
	case "main":
		l.main[w] = step
	case "side":
		l.side[w] = step
	default:
		t.Fatal(line)
	}
}

// check requires that the file has all acknowledged writes, and no others than the one that each writer
// may have begun. It records what it finds.
func (l *crashLog) check(t *testing.T, c *objects) {
	t.Helper()
	for w := range crashWriters {
		step := int64(0)
		o, err := c.Live().Get(noContext, mainOf(w))
		if err == nil {
			step = o.Spec.Replicas
		} else {
			require.ErrorIs(t, err, store.ErrNotFound)
		}
		require.Contains(t, []int64{l.main[w], l.main[w] + 1}, step, "writer %d: %d was acknowledged", w, l.main[w])
		_, err = c.Live().Get(noContext, sideOf(w))
		if err != nil {
			require.ErrorIs(t, err, store.ErrNotFound)
		}
		if l.side[w] == l.main[w] {
			require.Equal(t, l.side[w]%2 == 1, err == nil, "writer %d: after side step %d", w, l.side[w])
		}
		l.main[w] = step
		// The next process finishes the side step first, and does not print it.
		l.side[w] = -1
	}
}

// TestKilled: a process that is killed at any time loses no acknowledged write, and its file can be
// opened.
// Invariants: P26
func TestKilled(t *testing.T) {
	path := newPath(t)
	random := rand.New(rand.NewPCG(7, 1))
	var log crashLog
	acknowledged := 0
	for round := range 14 {
		c := startChild(t, "write", path)
		lines := []int{0, 1, 2 + random.IntN(20), 50 + random.IntN(400)}[round%4]
		for range lines {
			require.True(t, c.lines.Scan(), "the process has ended")
			log.read(t, c.lines.Text())
			acknowledged++
		}
		for _, line := range c.kill(t) {
			log.read(t, line)
			acknowledged++
		}
		db, err := bolt.Open(path, bolt.Options{Now: now})
		require.NoError(t, err)
		require.Empty(t, db.Damaged())
		log.check(t, kind(t, db))
		require.NoError(t, db.Close())
	}
	require.Greater(t, acknowledged, 500)
	require.FileExists(t, path)
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
}
