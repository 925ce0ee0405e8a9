package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"sigs.k8s.io/yaml"
)

// file has the settings of the file that the setting config names. It implements kong.Resolver.
type file struct {
	name   string            // empty: there is no file
	values map[string]string // by setting, in the syntax of flags
}

// read reads the file. It returns an error if a key is no setting, or a value is no plain value or list.
func (f *file) read(flags []*kong.Flag) error {
	if f.name == "" {
		return nil
	}
	text, err := os.ReadFile(f.name)
	if err != nil {
		return bad("config", "%s", oneLine(err))
	}
	read := map[string]any{}
	if err := yaml.UnmarshalStrict(text, &read, useNumber); err != nil {
		return bad("config", "%s is no YAML file of settings: %s", f.name, oneLine(err))
	}
	allowed := map[string]bool{}
	for _, flag := range flags {
		allowed[flag.Name] = flag.Name != "config" && flag.Name != "help" && flag.Name != "version"
	}
	f.values = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(read)) {
		if !allowed[name] {
			return &problemOf{setting: name, source: f.name, problem: "there is no such setting of a file"}
		}
		value, err := flagSyntax(read[name])
		if err != nil {
			return &problemOf{setting: name, source: f.name, problem: err.Error()}
		}
		f.values[name] = value
	}
	return nil
}

// useNumber is an option of the decoder: numbers keep their text.
func useNumber(d *json.Decoder) *json.Decoder {
	d.UseNumber()
	return d
}

// flagSyntax returns a value of the file in the syntax of a flag.
func flagSyntax(value any) (string, error) {
	list, isList := value.([]any)
	if !isList {
		return plain(value)
	}
	parts := make([]string, len(list))
	for i := range list {
		text, err := plain(list[i])
		if err != nil || strings.Contains(text, ",") {
			return "", fmt.Errorf("entry %d must be one plain value", i+1)
		}
		parts[i] = text
	}
	return strings.Join(parts, ","), nil
}

// plain returns the text of a value that is neither a list nor an object.
func plain(value any) (string, error) {
	switch v := value.(type) {
	case string:
		return v, nil
	case bool, json.Number:
		return fmt.Sprint(v), nil
	case nil:
		return "", errors.New("has no value")
	}
	return "", errors.New("must be a plain value or a list of such")
}

// Validate implements kong.Resolver. The file was checked when it was read.
func (f *file) Validate(*kong.Application) error { return nil }

// Resolve implements kong.Resolver. It returns nothing if there is an environment variable, because that
// overrides the file.
func (f *file) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, name := range flag.Tag.Envs {
		if _, set := os.LookupEnv(name); set {
			return nil, nil
		}
	}
	if value, set := f.values[flag.Name]; set {
		return value, nil
	}
	return nil, nil
}
