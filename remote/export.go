package remote

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store/record"
)

// Export writes all objects to w as they are at one time, with their UIDs and status: a backup, and the way to
// another store. Secrets are exported as they are stored: encrypted, if Options.Seal is set. It fails with an
// *UnreadableError if a record can't be read.
func (db *DB) Export(ctx context.Context, w io.Writer) error {
	records, err := db.engine.List(ctx, "")
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	slices.SortFunc(records, func(a, b Record) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	out, err := record.NewWriter(w)
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	for _, r := range records {
		if r.Key == aboutKey {
			continue
		}
		k := db.kinds[r.Key.Kind]
		if k == nil {
			return fmt.Errorf("export: %w", &UnreadableError{r.Key, errUnknownKind})
		}
		if err := k.check(r); err != nil {
			return fmt.Errorf("export: %w", &UnreadableError{r.Key, err})
		}
		if err := out.Write(record.Object{Kind: r.Key.Kind, Record: r.Content}); err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

// Import stores all objects of an export, with their UIDs and status, in a database that has none, and returns how
// many there are. Stop the manager of the store that they come from before the export, for good: two stores
// with the same fleet double it.
//
// Nobody leads while an import is under way, or after one that was broken off: Lead reports ErrImporting. Clear
// removes what is there then.
func (db *DB) Import(ctx context.Context, r io.Reader) (int, error) {
	stored, err := db.engine.List(ctx, "")
	if err != nil {
		return 0, fmt.Errorf("import: %w", err)
	}
	if slices.ContainsFunc(stored, func(r Record) bool { return r.Key != aboutKey }) {
		return 0, fmt.Errorf("import: %w", ErrNotEmpty)
	}
	count := 0
	err = db.whileImporting(ctx, func(token lead.Token) error {
		return record.Read(r, func(o record.Object) error {
			count++
			return db.importObject(ctx, o, token)
		})
	})
	if err != nil {
		return count, fmt.Errorf("import: %w", err)
	}
	return count, nil
}

// Clear removes all objects of a database into which an import was broken off.
func (db *DB) Clear(ctx context.Context) error {
	err := db.whileImporting(ctx, func(token lead.Token) error {
		stored, err := db.engine.List(ctx, "")
		if err != nil {
			return err
		}
		for _, r := range stored {
			if r.Key == aboutKey {
				continue
			}
			if err := db.put(ctx, Swap{Key: r.Key, Version: r.Version, Token: token}); err != nil {
				return fmt.Errorf("%v: %w", r.Key, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("clear: %w", err)
	}
	return nil
}

// importer is the ID of a process that imports.
const importer = "import"

// whileImporting calls do while this process leads, and while the database says that an import is under way.
func (db *DB) whileImporting(ctx context.Context, do func(lead.Token) error) error {
	ended := false
	err := lead.Run(ctx, db.engine.Lease(), lead.Options{ID: importer}, func(term *lead.Held) error {
		if err := db.setImporting(ctx, true, term); err != nil {
			return err
		}
		if err := do(term.Token()); err != nil {
			return err
		}
		err := db.setImporting(ctx, false, term)
		ended = err == nil
		return err
	})
	if err == nil && !ended { // Run returns nil when ctx was cancelled
		return context.Cause(ctx)
	}
	return err
}

func (db *DB) setImporting(ctx context.Context, importing bool, term *lead.Held) error {
	r, err := call(ctx, db, func(ctx context.Context) (Record, error) { return db.engine.Get(ctx, aboutKey) })
	if err != nil {
		return err
	}
	if err := layoutOf(r); err != nil && !errors.Is(err, ErrImporting) {
		return err
	}
	return db.put(ctx, Swap{Key: aboutKey, Version: r.Version, Content: aboutContent(importing), Token: term.Token()})
}

// put makes a write of an import.
func (db *DB) put(ctx context.Context, s Swap) error {
	_, err := call(ctx, db, func(ctx context.Context) (Record, error) { return db.engine.Swap(ctx, s) })
	return err
}

// importObject stores one object of an export.
func (db *DB) importObject(ctx context.Context, o record.Object, token lead.Token) error {
	k := db.kinds[o.Kind]
	if k == nil {
		return &UnreadableError{Key{Kind: o.Kind}, errUnknownKind}
	}
	key, content, err := k.transcribe(o.Record)
	if err != nil {
		return &UnreadableError{Key{o.Kind, key}, err}
	}
	if err := db.put(ctx, Swap{Key: Key{o.Kind, key}, Content: content, Token: token}); err != nil {
		return fmt.Errorf("%s %s: %w", o.Kind, key, err)
	}
	return nil
}

// transcribe returns an exported object as this database stores it.
func (c *cache[T]) transcribe(exported []byte) (object.Key, []byte, error) {
	content, err := record.Open(c.seal, exported)
	if err != nil {
		return object.Key{}, nil, err
	}
	o, err := c.json.Decode(content)
	if err != nil {
		return object.Key{}, nil, err
	}
	meta := o.ObjectMeta()
	if meta.Name == "" || meta.UID == "" {
		return meta.Key, nil, errIdentity
	}
	stored, _, err := c.encode(o)
	return meta.Key, stored, err
}
