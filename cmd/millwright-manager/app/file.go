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

// file holds the settings of a file. It implements kong.Resolver.
type file struct {
	name   string // or empty
	values map[string]string
}

// read reads the file. A key that is no setting, or whose value is invalid, is an error.
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
	known := map[string]bool{}
	for _, flag := range flags {
		known[flag.Name] = flag.Name != "config" && flag.Name != "help" && flag.Name != "version"
	}
	f.values = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(read)) {
		if !known[name] {
			return &problemOf{setting: name, source: f.name, problem: "there is no such setting of a file"}
		}
		value, err := spelled(read[name])
		if err != nil {
			return &problemOf{setting: name, source: f.name, problem: err.Error()}
		}
		f.values[name] = value
	}
	return nil
}

func useNumber(d *json.Decoder) *json.Decoder {
	d.UseNumber()
	return d
}

// spelled returns a value as a flag would have it.
func spelled(value any) (string, error) {
	list, several := value.([]any)
	if !several {
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

// Resolve implements kong.Resolver. An environment variable wins.
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
