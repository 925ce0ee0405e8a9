package apistore

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/object"
)

// A server stores anything that the definition of a kind allows, also values that a Go field can't
// hold: "soon" is a string, but no duration. One such value would make the whole list unreadable, and
// with it all objects of the kind. So the client leaves out the values that it can't read, and
// remembers their fields by object.

// lenientClient is a client that reads as much of an answer as possible.
type lenientClient struct {
	rest.Interface
	*losses
}

// losses are the fields that could not be read, by object.
type losses struct {
	mu  sync.Mutex
	all map[types.UID]loss
}

// loss has the unreadable fields of one version of an object.
type loss struct {
	version string
	fields  []string
}

// of returns an error for each field of an object that could not be read.
func (l *losses) of(raw Raw) []*object.FieldError {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	known, found := l.all[raw.GetUID()]
	if !found || known.version != raw.GetResourceVersion() {
		return nil
	}
	var out []*object.FieldError
	for _, field := range known.fields {
		out = append(out, object.Invalid(field, "can't be read"))
	}
	return out
}

func (l *losses) note(doc map[string]any, fields []string) {
	meta, _ := doc["metadata"].(map[string]any)
	uid, _ := meta["uid"].(string)
	version, _ := meta["resourceVersion"].(string)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all[types.UID(uid)] = loss{version, fields}
}

// forget drops the losses of an object that is gone.
func (l *losses) forget(uid types.UID) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.all, uid)
}

// lenientSerializer returns lenient decoders.
type lenientSerializer struct {
	runtime.NegotiatedSerializer
	losses *losses
}

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (s lenientSerializer) DecoderToVersion(d runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return lenientDecoder{s.NegotiatedSerializer.DecoderToVersion(d, version), s.losses}
}

// lenientDecoder is a decoder that leaves out the values that it can't read.
type lenientDecoder struct {
	runtime.Decoder
	losses *losses
}

// Decode implements runtime.Decoder.
func (d lenientDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	o, kind, err := d.Decoder.Decode(data, defaults, into)
	if err == nil {
		return o, kind, nil
	}
	mended, changed := d.mend(data)
	if !changed {
		return o, kind, err
	}
	if into != nil { // the failed attempt has set some of its fields
		blank := reflect.New(reflect.TypeOf(into).Elem()).Elem()
		reflect.ValueOf(into).Elem().Set(blank)
	}
	return d.Decoder.Decode(mended, defaults, into)
}

// mend returns a document without the values that can't be read. It returns false if it finds none.
func (d lenientDecoder) mend(data []byte) ([]byte, bool) {
	var doc map[string]any
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	if decoder.Decode(&doc) != nil {
		return nil, false
	}
	version, _ := doc["apiVersion"].(string)
	kind, _ := doc["kind"].(string)
	changed := false
	items, list := doc["items"].([]any)
	if !list {
		changed = d.mendOne(metav1.TypeMeta{APIVersion: version, Kind: kind}, doc)
	}
	for _, item := range items {
		if one, ok := item.(map[string]any); ok {
			changed = d.mendOne(metav1.TypeMeta{APIVersion: version, Kind: strings.TrimSuffix(kind, "List")}, one) || changed
		}
	}
	if !changed {
		return nil, false
	}
	mended, err := json.Marshal(doc)
	return mended, err == nil
}

func (d lenientDecoder) mendOne(of metav1.TypeMeta, doc map[string]any) bool {
	fields := d.prune(of, doc, nil)
	if len(fields) > 0 {
		d.losses.note(doc, fields)
	}
	return len(fields) > 0
}

// prune removes the values that can't be read. part is the object at that path. It returns the paths
// of what it removed, in order.
func (d lenientDecoder) prune(of metav1.TypeMeta, part map[string]any, path []string) []string {
	var gone []string
	for _, name := range slices.Sorted(maps.Keys(part)) {
		at := append(slices.Clone(path), name)
		if len(path) == 0 && (name == "apiVersion" || name == "kind") || d.reads(of, at, part[name]) {
			continue
		}
		if inner, ok := part[name].(map[string]any); ok {
			if deeper := d.prune(of, inner, at); len(deeper) > 0 && d.reads(of, at, inner) {
				gone = append(gone, deeper...)
				continue
			}
		}
		delete(part, name)
		gone = append(gone, strings.Join(at, "."))
	}
	return gone
}

// reads reports whether an object that has only that value, at that path, can be read.
func (d lenientDecoder) reads(of metav1.TypeMeta, path []string, value any) bool {
	for _, name := range slices.Backward(path) {
		value = map[string]any{name: value}
	}
	doc, _ := value.(map[string]any)
	doc["apiVersion"], doc["kind"] = of.APIVersion, of.Kind
	text, err := json.Marshal(doc)
	if err != nil {
		return false
	}
	_, _, err = d.Decoder.Decode(text, nil, nil)
	return err == nil
}
