package apistore

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// checkKey returns an error if the collection can't have an object with that key.
func (c *Collection[T, R]) checkKey(k object.Key) error {
	switch {
	case k.Name == "":
		return errNoName
	case (k.Namespace != "") != c.Namespaced, len(content.IsPathSegmentName(k.Name)) > 0, len(content.IsPathSegmentName(k.Namespace)) > 0:
		return store.ErrNotFound
	}
	return nil
}

// Create implements store.Collection.
func (c *Collection[T, R]) Create(ctx context.Context, o T) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if o == none {
		return none, about("create", object.Key{}, errNoObject)
	}
	k := o.ObjectMeta().Key
	switch {
	case k.Name == "":
		return none, about("create", k, errNoName)
	case c.Namespaced && k.Namespace == "":
		return none, about("create", k, errNoSpace)
	case !c.Namespaced && k.Namespace != "":
		return none, about("create", k, errSpace)
	}
	raw, err := c.Codec.Create(o)
	if err != nil {
		return none, about("create", k, &refused{store.ErrInvalid, err})
	}
	defer c.cache.Writing(k)()
	made, err := c.client.create(ctx, raw)
	if err != nil {
		return none, about("create", k, Translate(err))
	}
	return c.written(made), nil
}

// Update implements store.Collection.
func (c *Collection[T, R]) Update(ctx context.Context, o T) (T, error) {
	return c.update(ctx, "update", o, step[T, R]{patch: c.Codec.Update})
}

// UpdateStatus implements store.Collection. It first writes the parts of the status that are in
// annotations.
func (c *Collection[T, R]) UpdateStatus(ctx context.Context, o T) (T, error) {
	if c.NoStatus {
		return c.update(ctx, "update status", o)
	}
	return c.update(ctx, "update status", o, step[T, R]{patch: c.Codec.UpdateNotes}, step[T, R]{"status", c.Codec.UpdateStatus})
}

// step is one patch of an update.
type step[T any, R Raw] struct {
	part  string // a subresource, or empty
	patch func(stored R, o T) ([]byte, error)
}

func (c *Collection[T, R]) update(ctx context.Context, verb string, o T, steps ...step[T, R]) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if o == none {
		return none, about(verb, object.Key{}, errNoObject)
	}
	meta := o.ObjectMeta()
	if meta.Name != "" && meta.Version == "" {
		return none, about(verb, meta.Key, errVersion)
	}
	defer c.cache.Writing(meta.Key)()
	stored, err := c.base(ctx, meta)
	if err == nil {
		o, err = c.write(ctx, stored, o, steps)
	}
	if err != nil {
		return none, about(verb, meta.Key, err)
	}
	return o, nil
}

// write sends the patches that are needed; if none is, it sends lock. The server refuses a patch if the
// object was changed since it was read, or since the patch before.
func (c *Collection[T, R]) write(ctx context.Context, stored R, o T, steps []step[T, R]) (T, error) {
	var none, now T
	for _, s := range steps {
		body, err := s.patch(stored, o)
		if err != nil {
			return none, &refused{store.ErrInvalid, err}
		}
		if body == nil {
			continue
		}
		if c.Untracked && s.part == "" && onlyUpdated(stored) { // the server takes it from no other part
			if body, err = withoutTracking(body); err != nil {
				return none, err
			}
		}
		if stored, err = c.client.patch(ctx, o.ObjectMeta().Key, s.part, body); err != nil {
			return none, Translate(err)
		}
		now = c.written(stored)
		o = o.Clone()
		o.ObjectMeta().Version = stored.GetResourceVersion()
	}
	if now != none {
		return now, nil
	}
	return c.write(ctx, stored, o, []step[T, R]{{patch: lock[T, R]}})
}

// onlyUpdated reports whether the server has recorded which program has set which field of an object, and nobody
// applies the object, for which that record is needed.
func onlyUpdated(raw Raw) bool {
	record := raw.GetManagedFields()
	applied := func(f metav1.ManagedFieldsEntry) bool { return f.Operation != metav1.ManagedFieldsOperationUpdate }
	return len(record) > 0 && !slices.ContainsFunc(record, applied)
}

// withoutTracking returns a patch that also removes the record of fields, in the form that the server asks for: a
// list of one empty entry.
func withoutTracking(patch []byte) ([]byte, error) {
	var body map[string]json.RawMessage
	if err := json.Unmarshal(patch, &body); err != nil {
		return nil, err
	}
	meta := map[string]json.RawMessage{}
	if text, ok := body["metadata"]; ok {
		if err := json.Unmarshal(text, &meta); err != nil {
			return nil, err
		}
	}
	meta["managedFields"] = json.RawMessage("[{}]")
	text, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	body["metadata"] = text
	return json.Marshal(body)
}

// written returns what the server has stored, and shows it in the cache.
func (c *Collection[T, R]) written(raw R) T {
	o := c.read(raw)
	c.cache.wrote(raw, o)
	return o
}

// base returns the stored object that an update is based on. If the cache doesn't have that version,
// it asks the server.
func (c *Collection[T, R]) base(ctx context.Context, m *object.Meta) (R, error) {
	var none R
	if err := c.checkKey(m.Key); err != nil {
		return none, err
	}
	if known, found := c.cache.at(m.Key, m.Version); found && (m.UID == "" || known.UID == m.UID) {
		return known.Raw, nil
	}
	raw, err := c.client.get(ctx, m.Key)
	if err != nil {
		return none, Translate(err)
	}
	if raw.GetResourceVersion() != m.Version || m.UID != "" && string(raw.GetUID()) != m.UID {
		return none, store.ErrConflict
	}
	return raw, nil
}

// Delete implements store.Collection.
func (c *Collection[T, R]) Delete(ctx context.Context, k object.Key, uid string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.checkKey(k); err != nil {
		return about("delete", k, err)
	}
	err := Translate(c.client.delete(ctx, k, uid))
	if errors.Is(err, store.ErrInvalid) && uid != "" {
		// The server refuses a UID that no object can have as invalid.
		if raw, failed := c.client.get(ctx, k); failed == nil && string(raw.GetUID()) != uid {
			err = store.ErrConflict
		}
	}
	if err != nil {
		return about("delete", k, err)
	}
	return nil
}

// lock is a patch that changes nothing, and fails if the stored version is not o's.
func lock[T object.Object[T], R Raw](_ R, o T) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": o.ObjectMeta().Version}})
}
