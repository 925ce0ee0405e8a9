package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxBytes limits the size of a dump: enough for some ten thousand pods.
const maxBytes = 256 << 20

// read adds the objects of a file. The name "-" stands for the input in.
func (c *cluster) read(file string, in io.Reader) error {
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return errors.Unwrap(err) // without the name of the file, which the caller adds
		}
		defer opened.Close() //nolint:errcheck // only read
		in = opened
	}
	text, err := io.ReadAll(io.LimitReader(in, maxBytes+1))
	switch {
	case err != nil:
		return err
	case len(text) > maxBytes:
		return fmt.Errorf("larger than %d MiB", maxBytes>>20)
	}
	return c.decode(text)
}

// decode adds the objects of a text: JSON or YAML, with one or more documents.
func (c *cluster) decode(text []byte) error {
	trimmed := bytes.TrimSpace(text)
	if len(trimmed) == 0 {
		return errors.New("empty")
	}
	next := yamlDocuments(text)
	if trimmed[0] == '{' {
		next = jsonDocuments(trimmed)
	}
	found := 0
	for n := 1; ; n++ {
		document, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
		if string(document) == "null" {
			continue // an empty document
		}
		if err := c.add(document, "", ""); err != nil {
			return fmt.Errorf("document %d: %w", n, err)
		}
		found++
	}
	if found == 0 {
		return errors.New("no object in it")
	}
	return nil
}

// jsonDocuments returns a function that returns the next document, or io.EOF.
func jsonDocuments(text []byte) func() (json.RawMessage, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	return func() (document json.RawMessage, err error) {
		err = decoder.Decode(&document)
		return document, err
	}
}

// yamlDocuments returns a function that returns the next document, converted to JSON, or io.EOF.
func yamlDocuments(text []byte) func() (json.RawMessage, error) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	return func() (json.RawMessage, error) {
		var document any
		if err := decoder.Decode(&document); err != nil {
			return nil, err
		}
		converted, err := json.Marshal(document)
		if err != nil {
			return nil, errors.New("a key is not a word")
		}
		return converted, nil
	}
}

// add adds an object, or all objects of a list. apiVersion and kind are the defaults for items of a
// list.
func (c *cluster) add(document json.RawMessage, apiVersion, kind string) error {
	var head struct {
		APIVersion, Kind string
		Items            []json.RawMessage
	}
	if err := json.Unmarshal(document, &head); err != nil {
		return errors.New("not an object of Kubernetes")
	}
	if head.Kind != "" {
		apiVersion, kind = head.APIVersion, head.Kind
	}
	if items, list := strings.CutSuffix(kind, "List"); list {
		for i, item := range head.Items {
			if err := c.add(item, apiVersion, items); err != nil {
				return fmt.Errorf("item %d: %w", i+1, err)
			}
		}
		return nil
	}
	if kind == "" {
		return errors.New("an object without kind")
	}
	if otherGroup(apiVersion, kind) {
		return nil
	}
	return c.addObject(kind, document)
}
