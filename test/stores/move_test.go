package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/test/pglab"
)

// TestMain serves an etcd, if this test program was started for it.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "-serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

// place is a store that a fleet can be in.
type place struct {
	name   string
	open   func(context.Context) (opened, error)
	export func(context.Context, opened, io.Writer) error
	// fill imports an export into the place, which is empty.
	fill func(context.Context, io.Reader) error
}

func remotePlace(t *testing.T, name string) place {
	t.Helper()
	open, end, err := opener(t.Context(), name, t.TempDir())
	if errors.Is(err, pglab.ErrNotInstalled) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(end)
	return place{
		name: name, open: open,
		export: func(ctx context.Context, o opened, w io.Writer) error { return o.db.Export(ctx, w) },
		fill: func(ctx context.Context, r io.Reader) error {
			o, err := open(ctx)
			if err != nil {
				return err
			}
			o.resign()
			defer o.close()
			_, err = o.db.Import(ctx, r)
			return err
		},
	}
}

func boltPlace(t *testing.T) place {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fleet.db")
	var db *bolt.DB
	return place{
		name: "bolt",
		open: func(context.Context) (opened, error) {
			var err error
			if db, err = bolt.Open(path, bolt.Options{}); err != nil {
				return opened{}, err
			}
			return opened{options: db.ManagerOptions(), close: func() { _ = db.Close() }}, nil
		},
		export: func(_ context.Context, _ opened, w io.Writer) error { return db.Export(w) },
		fill: func(_ context.Context, r io.Reader) error {
			_, err := bolt.Import(path, r, bolt.Options{})
			return err
		},
	}
}

// identities returns the UID of each machine, and its VM, once there are so many and none is being deleted.
func identities(t *testing.T, o manager.Options, machines int) map[string]string {
	t.Helper()
	ids := make(map[string]string)
	require.Eventually(t, func() bool {
		all, err := o.Store.Machines.Live().List(t.Context(), store.Query{})
		if err != nil || len(all) != machines {
			return false
		}
		for _, m := range all {
			if m.Status.Phase != machine.PhaseAvailable {
				return false
			}
			ids[m.UID] = m.Spec.ProviderID
		}
		return true
	}, time.Minute, 10*time.Millisecond)
	return ids
}

// TestMoves: a fleet goes from bolt to etcd, to PostgreSQL, and back to bolt. Each time it arrives with all its machines,
// none is made or deleted because of it, and it goes on: it is rolled in each store.
func TestMoves(t *testing.T) {
	const machines = 30
	ctx := t.Context()
	b := &bench{machines: machines}
	class := "a"
	var carried bytes.Buffer
	var want map[string]string
	for i, p := range []place{boltPlace(t), remotePlace(t, "etcd"), remotePlace(t, "postgres"), boltPlace(t)} {
		if i > 0 {
			require.NoError(t, p.fill(ctx, &carried), p.name)
		}
		db, err := p.open(ctx)
		require.NoError(t, err)
		if i > 0 {
			require.Equal(t, want, identities(t, db.options, machines), p.name)
		}
		made := b.provider.count()
		stop, err := b.start(ctx, db)
		require.NoError(t, err)
		if i == 0 {
			require.NoError(t, b.create(ctx, db.options))
		} else {
			require.NoError(t, b.await(ctx, db.options))
			require.Equal(t, made, b.provider.count(), "nothing was made or deleted")
			class = map[string]string{"a": "b", "b": "a"}[class]
			require.NoError(t, b.roll(ctx, db.options, class))
		}
		want = identities(t, db.options, machines)
		require.Equal(t, machines, b.provider.count())
		stop()
		carried.Reset()
		require.NoError(t, p.export(ctx, db, &carried), p.name)
		db.close()
	}
}
