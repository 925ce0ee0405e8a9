package group

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

// Dir is the directory of one cluster's groups.
type Dir struct{ locks *registry.Dir }

// At returns the directory of that path. If there is none, it is empty.
func At(path string) *Dir { return &Dir{registry.At(path)} }

// Make makes the directory if it is not there.
func (d *Dir) Make() error {
	_, err := registry.Make(d.locks.Path())
	return err
}

const suffix = ".group"

func (d *Dir) path(name string) string { return filepath.Join(d.locks.Path(), name+suffix) }

// Read returns the record of a group, or nil.
func (d *Dir) Read(name string) (*Group, error) {
	g := &Group{}
	found, err := registry.Load(d.path(name), g)
	switch {
	case err != nil:
		return nil, fmt.Errorf("record of group %s: %w", name, err)
	case !found:
		return nil, nil //nolint:nilnil // nothing is on record
	}
	return g, nil
}

// Names returns the names of all groups.
func (d *Dir) Names() ([]string, error) { return registry.Names(d.locks.Path(), suffix) }

// Change writes the record that change makes of the existing one (nil if there is none). No other
// program changes it meanwhile. If change returns nil, the record is removed with everything else
// of that name. If change returns an error, nothing changes.
func (d *Dir) Change(ctx context.Context, name string, change func(*Group) (*Group, error)) error {
	guard, err := d.locks.Guard(ctx, name)
	if err != nil {
		return err
	}
	defer guard.Release()
	have, err := d.Read(name)
	if err != nil {
		return err
	}
	var before *Group
	if have != nil {
		before = have.Clone()
	}
	next, err := change(have)
	switch {
	case err != nil:
		return err
	case next == nil && before == nil:
		return guard.Remove()
	case next == nil:
		return errors.Join(os.Remove(d.path(name)), guard.Remove())
	case reflect.DeepEqual(next, before):
		return nil
	}
	return registry.Write(d.path(name), next)
}

// Seat waits for the right to be the supervisor of a group. The kernel frees it
// when the process ends.
func (d *Dir) Seat(ctx context.Context, name string) (*registry.Seat, error) {
	for {
		seat, err := d.locks.TakeSeat(name)
		if !errors.Is(err, registry.ErrHeld) {
			return seat, err
		}
		if registry.Pause(ctx) != nil {
			return nil, registry.ErrHeld
		}
	}
}
