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

// Dir is the directory with the records of one cluster's groups.
type Dir struct{ path string }

// At returns the directory of a path. It need not exist yet.
func At(path string) *Dir { return &Dir{path} }

// Make creates the directory if it does not exist.
func (d *Dir) Make() error { return os.MkdirAll(d.path, 0o700) }

const suffix = ".group" // of the name of a record's file

func (d *Dir) file(name string) string { return filepath.Join(d.path, name+suffix) }

// Read returns a group, or nil if it has no record.
func (d *Dir) Read(name string) (*Group, error) {
	text, err := os.ReadFile(d.file(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is no record
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

// Names returns the names of all groups with a record.
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

// Change calls the function change with a group, or nil if it has no record, and writes the group that
// change returns. If change returns nil, the record is removed. If it returns an error, nothing is
// written. Meanwhile no other program can change the record.
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
