package apistore

import (
	"context"
	"encoding/json"
	"errors"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// place checks that there can be an object of that key.
func (c *Collection[T, R]) place(k object.Key) error {
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
	made, err := c.client.create(ctx, raw)
	if err != nil {
		return none, about("create", k, Translate(err))
	}
	return c.written(made), nil
}

// Update implements store.Collection.
func (c *Collection[T, R]) Update(ctx context.Context, o T) (T, error) {
	return c.write(ctx, "update", o, "", c.Codec.Update)
}

// UpdateStatus implements store.Collection.
func (c *Collection[T, R]) UpdateStatus(ctx context.Context, o T) (T, error) {
	if c.NoStatus {
		return c.write(ctx, "update status", o, "", func(R, T) ([]byte, error) { return nil, nil })
	}
	return c.write(ctx, "update status", o, "status", c.Codec.UpdateStatus)
}

func (c *Collection[T, R]) write(ctx context.Context, verb string, o T, part string, patch func(R, T) ([]byte, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	if o == none {
		return none, about(verb, object.Key{}, errNoObject)
	}
	meta := o.ObjectMeta()
	k := meta.Key
	if k.Name != "" && meta.Version == "" {
		return none, about(verb, k, errVersion)
	}
	stored, err := c.base(ctx, meta)
	if err != nil {
		return none, about(verb, k, err)
	}
	body, err := patch(stored, o)
	if err == nil && body == nil {
		body, err = lock(meta.Version) // the version still has to be compared
	}
	if err != nil {
		return none, about(verb, k, &refused{store.ErrInvalid, err})
	}
	changed, err := c.client.patch(ctx, k, part, body)
	if err != nil {
		return none, about(verb, k, Translate(err))
	}
	return c.written(changed), nil
}

// written returns what the server has stored, and shows it in the cache.
func (c *Collection[T, R]) written(raw R) T {
	o := c.read(raw)
	c.cache.wrote(raw, o)
	return o
}

// base returns the stored object that an update is based on. If the caches don't have that version,
// it asks the server.
func (c *Collection[T, R]) base(ctx context.Context, m *object.Meta) (R, error) {
	var none R
	if err := c.place(m.Key); err != nil {
		return none, err
	}
	if raw, found := c.cache.at(m.Key, m.Version); found && (m.UID == "" || string(raw.GetUID()) == m.UID) {
		return raw, nil
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
	if err := c.place(k); err != nil {
		return about("delete", k, err)
	}
	err := Translate(c.client.delete(ctx, k, uid))
	if errors.Is(err, store.ErrInvalid) && uid != "" {
		// A UID that no object can have.
		if raw, failed := c.client.get(ctx, k); failed == nil && string(raw.GetUID()) != uid {
			err = store.ErrConflict
		}
	}
	if err != nil {
		return about("delete", k, err)
	}
	return nil
}

// lock is the patch that changes nothing, and applies to one version alone.
func lock(version string) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": version}})
}
