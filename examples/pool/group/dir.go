package group

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/millwright-go/millwright/examples/quickstart/roster"
)

// Dir is the directory of one cluster's groups.
type Dir struct{ path string }

// At returns the directory of that path. If there is none, it is empty.
func At(path string) *Dir { return &Dir{path} }

// Make makes the directory if it is not there.
func (d *Dir) Make() error { return os.MkdirAll(d.path, 0o700) }

const suffix = ".group"

func (d *Dir) file(name string) string { return filepath.Join(d.path, name+suffix) }

// Read returns the record of a group, or nil.
func (d *Dir) Read(name string) (*Group, error) {
	text, err := os.ReadFile(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // nothing is on record
	}
	g := &Group{}
	if err == nil {
		err = json.Unmarshal(text, g)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.file(name), err)
	}
	return g, nil
}

// Names returns the names of all groups.
func (d *Dir) Names() (names []string, err error) {
	files, err := os.ReadDir(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, file := range files {
		if name, ok := strings.CutSuffix(file.Name(), suffix); ok {
			names = append(names, name)
		}
	}
	return names, err
}

// Change writes the record that change makes of the existing one (nil if there is none). No other
// program changes it meanwhile. If change returns nil, the record is removed. If change returns an
// error, nothing changes.
func (d *Dir) Change(ctx context.Context, name string, change func(*Group) (*Group, error)) error {
	guard, err := roster.Hold(ctx, filepath.Join(d.path, name+".guard"))
	if err != nil {
		return err
	}
	defer func() { _ = guard.Close() }()
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
	case err != nil, next == nil && before == nil:
		return err
	case next == nil:
		return os.Remove(d.file(name))
	case reflect.DeepEqual(next, before):
		return nil
	}
	text, err := json.Marshal(next)
	if err != nil {
		return err
	}
	return roster.WriteFile(d.file(name), text, 0o600)
}
