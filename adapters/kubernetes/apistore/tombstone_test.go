package apistore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store/storetest"
)

// bare is a codec that reads metadata only.
type bare struct {
	Codec[*storetest.Object, *metav1.PartialObjectMetadata]
}

func (bare) Read(raw *metav1.PartialObjectMetadata) (*storetest.Object, []*object.FieldError) {
	return &storetest.Object{Meta: object.Meta{
		Key: object.Key{Namespace: raw.Namespace, Name: raw.Name}, UID: string(raw.UID), Version: raw.ResourceVersion, Finalizers: raw.Finalizers,
	}}, nil
}

// TestGoneStaysGone: an object that an own write has ended does not come back when the watch or a
// list delivers an older state of it. Another object with its name is seen.
func TestGoneStaysGone(t *testing.T) {
	deletedAt := metav1.NewTime(time.Date(2031, 5, 7, 11, 0, 0, 0, time.UTC))
	at := func(uid, version string, finalizers ...string) *metav1.PartialObjectMetadata {
		raw := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "a", ResourceVersion: version, Finalizers: finalizers}}
		raw.UID = types.UID(uid)
		if uid == "1" {
			raw.DeletionTimestamp = &deletedAt
		}
		return raw
	}
	key := object.Key{Namespace: "n", Name: "a"}
	type things = cache[*storetest.Object, *metav1.PartialObjectMetadata]
	type delivery func(*things) error
	update := func(raw *metav1.PartialObjectMetadata) delivery {
		return func(c *things) error { return c.Update(raw) }
	}
	list := func(version string, items ...any) delivery {
		return func(c *things) error { return c.Replace(items, version) }
	}
	for name, c := range map[string]struct {
		deliveries []delivery
		uid        string // of the object in the cache afterwards; empty: there is none
	}{
		"an earlier state":              {[]delivery{update(at("1", "590", "f"))}, ""},
		"the last state":                {[]delivery{update(at("1", "600", "f"))}, ""},
		"a write of others in between":  {[]delivery{update(at("1", "4000", "f"))}, ""},
		"a list from before":            {[]delivery{list("5000", at("1", "600", "f"))}, ""},
		"a list from before, and again": {[]delivery{list("5000", at("1", "600", "f")), update(at("1", "600", "f"))}, ""},
		"a list without it":             {[]delivery{list("5002")}, ""},
		"another of its name":           {[]delivery{update(at("2", "5003"))}, "2"},
		"a list with another":           {[]delivery{list("5004", at("2", "5003"))}, "2"},
		"its end, and another": {[]delivery{
			func(c *things) error { return c.Delete(at("1", "5001", "f")) },
			update(at("2", "5003")),
		}, "2"},
		"a late answer to an own write": {[]delivery{func(c *things) error {
			raw := at("1", "5000", "f")
			o, _ := c.codec.Read(raw)
			c.wrote(raw, o)
			return nil
		}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cache := newCache("thing", Codec[*storetest.Object, *metav1.PartialObjectMetadata](bare{}), nil, func(error) {})
			require.NoError(t, cache.Replace([]any{at("1", "600", "f")}, "700"))
			left := at("1", "600")
			o, _ := cache.codec.Read(left)
			cache.wrote(left, o)
			_, found := cache.raw(key)
			require.False(t, found)
			for _, deliver := range c.deliveries {
				require.NoError(t, deliver(cache))
			}
			raw, found := cache.raw(key)
			shown, err := cache.Get(t.Context(), key)
			require.Equal(t, c.uid != "", found)
			require.Equal(t, found, err == nil)
			if found {
				require.Equal(t, c.uid, string(raw.UID))
				require.Equal(t, c.uid, shown.UID)
			}
		})
	}
}
