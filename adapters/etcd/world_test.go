package etcd

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/remote"
)

// alarms remembers what a DB has raised.
type alarms struct {
	mu     sync.Mutex
	raised map[remote.AlarmKind]int
	now    map[remote.AlarmKind]error
}

func (a *alarms) take(alarm remote.Alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.now == nil {
		a.raised, a.now = make(map[remote.AlarmKind]int), make(map[remote.AlarmKind]error)
	}
	if a.now[alarm.Kind] = alarm.Err; alarm.Err != nil {
		a.raised[alarm.Kind]++
	}
}

func (a *alarms) times(k remote.AlarmKind) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.raised[k]
}

func (a *alarms) present(k remote.AlarmKind) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now[k]
}

// openFleet opens a fleet.
func openFleet(t *testing.T, client *clientv3.Client, o Options) (*DB, *alarms) {
	t.Helper()
	var a alarms
	o.Alarm = a.take
	db, err := Open(within(t), client, o)
	require.NoError(t, err)
	t.Cleanup(db.Close)
	return db, &a
}

// eventually polls until done returns true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	require.Eventually(t, done, time.Minute, 5*time.Millisecond, what)
}

// sample returns a machine.
func sample(name string) *machine.Machine {
	return &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}, Finalizers: []string{"example.org/hold"}}}
}

// create stores a machine.
func create(t *testing.T, db *DB, name string) *machine.Machine {
	t.Helper()
	m, err := db.Machines().Create(within(t), sample(name))
	require.NoError(t, err)
	return m
}

// note stores a message in the status of a machine.
func note(ctx context.Context, db *DB, m *machine.Machine, text string) (*machine.Machine, error) {
	c := m.Clone()
	c.Status.LastOperation.Message = text
	return db.Machines().UpdateStatus(ctx, c)
}

// leadUntil lets a DB lead in the background. It returns a channel of its terms; the test holds each until it ends.
func leadUntil(t *testing.T, db *DB, id string) (terms <-chan *lead.Held) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	all, ended := make(chan *lead.Held, 100), make(chan error, 1)
	go func() {
		ended <- db.Lead(ctx, lead.Options{ID: id, TTL: 2 * time.Second}, func(term *lead.Held) error {
			all <- term
			<-term.Context().Done()
			return nil
		})
	}()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
	})
	return all
}

// next returns the next term.
func next(t *testing.T, terms <-chan *lead.Held) *lead.Held {
	t.Helper()
	select {
	case term := <-terms:
		return term
	case <-within(t).Done():
		require.FailNow(t, "no term")
		return nil
	}
}

// copyData copies all keys of a server to another one.
func copyData(t *testing.T, from, to *clientv3.Client, prefix string) {
	t.Helper()
	all, err := from.Get(within(t), prefix, clientv3.WithPrefix())
	require.NoError(t, err)
	for _, kv := range all.Kvs {
		_, err := to.Put(within(t), string(kv.Key), string(kv.Value))
		require.NoError(t, err, fmt.Sprint("put ", string(kv.Key)))
	}
}
