package main

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fleet.db")
	db, err := bolt.Open(path, bolt.Options{})
	require.NoError(t, err)
	_, err = db.Secrets().Create(context.Background(), &machine.Secret{Meta: object.Meta{Key: object.Key{Name: "a"}}})
	require.NoError(t, err)
	require.NoError(t, db.Close())

	var out, errors bytes.Buffer
	require.Equal(t, 2, run([]string{path}, &out, &errors))
	require.Equal(t, usage, errors.String())
	errors.Reset()
	require.Zero(t, run([]string{path, path + ".new"}, &out, &errors))
	require.Equal(t, "copied: 1 of kind secret\n", out.String())
	require.Equal(t, 1, run([]string{path, path + ".new"}, &out, &errors))
	require.Contains(t, errors.String(), "file exists")
}
