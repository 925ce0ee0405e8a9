package group

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
	g, _, err := d.read(name)
	return g, err
}

func (d *Dir) read(name string) (*Group, []byte, error) {
	text, err := os.ReadFile(d.path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	g := &Group{}
	if err := json.Unmarshal(text, g); err != nil {
		return nil, nil, fmt.Errorf("record of group %s: %s: %w", name, d.path(name), err)
	}
	return g, text, nil
}

// Names returns the names of all groups.
func (d *Dir) Names() ([]string, error) {
	files, err := os.ReadDir(d.locks.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, file := range files {
		if name, ok := strings.CutSuffix(file.Name(), suffix); ok {
			names = append(names, name)
		}
	}
	return names, err
}

// Change writes the record that change makes of the existing one (nil if there is none). No other
// program changes it meanwhile. If change returns nil, the record is removed with everything else
// of that name. If change returns an error, nothing changes.
func (d *Dir) Change(ctx context.Context, name string, change func(*Group) (*Group, error)) error {
	guard, err := d.locks.Guard(ctx, name)
	if err != nil {
		return err
	}
	defer guard.Release()
	have, before, err := d.read(name)
	if err != nil {
		return err
	}
	next, err := change(have)
	switch {
	case err != nil:
		return err
	case next == nil && before == nil:
		return guard.Remove()
	case next == nil:
		return errors.Join(os.Remove(d.path(name)), guard.Remove())
	}
	text, err := json.Marshal(next)
	if err != nil || bytes.Equal(text, before) {
		return err
	}
	if err := os.WriteFile(d.path(name)+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(d.path(name)+".new", d.path(name))
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
