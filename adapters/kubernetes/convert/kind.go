package convert

import (
	"encoding/json"
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/millwright-go/millwright/object"
)

// Kind translates the objects of one kind. W is a pointer to the type that an API server stores, C a
// pointer to the library's type. It is safe for concurrent use.
type Kind[W metav1.Object, C object.Object[C]] struct {
	name  string
	keys  Keys
	empty func() W // a new stored object
	clone func(W) W
	blank func() C // a new object of the library

	// read sets the fields of C from W. write and writeStatus change w, which reads as was, so that it
	// reads as now.
	read        func(*reader, W, C)
	write       func(x *writer, w W, was, now C)
	writeStatus func(x *writer, w W, was, now C) // nil if the kind has no status

	records []record[C] // annotations
	labels  []string    // labels that are fields of C
	hidden  []string    // further annotations that are fields of C
	// counter is the annotation that counts changes of the records, as the generation counts those of
	// the stored spec. Empty: they are not counted.
	counter string
	// notes is the annotation with the parts of a status that have no field. Empty: there is none.
	notes string
}

// problems collects the parts of an object that can't be read.
type problems struct{ list []*object.FieldError }

func (p *problems) add(field, problem string) {
	p.list = append(p.list, object.Invalid(field, problem))
}

// reader is what the functions that read a kind need.
type reader struct {
	*problems
	keys Keys
}

// writer is what the functions that write a kind need. It keeps their first error.
type writer struct {
	keys       Keys
	err        error
	generation int64 // of the stored object
}

func (x *writer) fail(err error) {
	if x.err == nil {
		x.err = err
	}
}

func (x *writer) encode(name string, pointer any) string {
	text, err := encode(pointer)
	if err != nil {
		x.fail(object.Invalid(name, "can't be stored"))
	}
	return text
}

// Read returns the library's form of a stored object, and an error for each part that can't be read.
// Such a part is zero in the result, or a value that the library reports as invalid later. The rest
// can be used. The stored value stays until the library changes that part. The result shares no memory
// with w.
func (k *Kind[W, C]) Read(w W) (C, []*object.FieldError) {
	p := &problems{}
	c := k.blank()
	m := c.ObjectMeta()
	readMeta(m, w, k)
	for _, r := range k.records {
		if text, ok := w.GetAnnotations()[r.name]; ok {
			if err := decode(text, r.at(c)); err != nil {
				p.add("metadata.annotations["+r.name+"]", "can't be read")
			}
		}
	}
	k.read(&reader{p, k.keys}, w, c)
	m.Generation += k.changes(w)
	for i, e := range p.list {
		p.list[i] = e.Of(k.name, m.Key)
	}
	return c, p.list
}

// changes returns the number of changes of the spec that an API server did not count.
func (k *Kind[W, C]) changes(w W) int64 {
	if k.counter == "" {
		return 0
	}
	n, err := strconv.ParseInt(w.GetAnnotations()[k.counter], 10, 64)
	if err != nil {
		return 0
	}
	return max(0, min(n, 1<<62))
}

// Create returns the stored form of a new object, without the status, which an API server accepts only
// in a separate request.
func (k *Kind[W, C]) Create(c C) (W, error) {
	w := k.empty()
	was, _ := k.Read(w)
	x := &writer{keys: k.keys}
	w.SetNamespace(c.ObjectMeta().Namespace)
	w.SetName(c.ObjectMeta().Name)
	k.change(x, w, was, c)
	return w, k.named(x.err, c)
}

// change writes metadata and spec.
func (k *Kind[W, C]) change(x *writer, w W, was, now C) {
	writeMeta(w, was.ObjectMeta(), now.ObjectMeta(), k)
	for _, r := range k.records {
		before, after := x.encode(r.name, r.at(was)), x.encode(r.name, r.at(now))
		if before != after {
			annotate(w, r.name, after)
		}
	}
	k.write(x, w, was, now)
}

// annotate sets an annotation, or removes it if the text is empty.
func annotate(w metav1.Object, key, text string) {
	all := w.GetAnnotations()
	if text == "" {
		delete(all, key)
		return
	}
	if all == nil {
		all = map[string]string{}
	}
	all[key] = text
	w.SetAnnotations(all)
}

// Update returns the merge patch that gives the stored object base the metadata and spec of c. It
// returns nil if nothing is to be changed. The patch has the version of c: a server refuses it if the
// object has another version by then.
func (k *Kind[W, C]) Update(base W, c C) ([]byte, error) {
	was, _ := k.Read(base)
	x, after := &writer{keys: k.keys}, k.clone(base)
	k.change(x, after, was, c)
	patch, err := difference(base, after)
	if err == nil && k.counter != "" && patch["spec"] == nil && !was.SpecEqual(c) {
		annotate(after, k.counter, strconv.FormatInt(k.changes(base)+1, 10))
		patch, err = difference(base, after)
	}
	x.fail(err)
	return k.finish(x, patch, c)
}

// UpdateNotes is Update for the parts of the status that are in an annotation.
func (k *Kind[W, C]) UpdateNotes(base W, c C) ([]byte, error) {
	if k.notes == "" {
		return nil, nil
	}
	return k.updateStatus(base, c, "metadata")
}

// UpdateStatus is Update for the rest of the status.
func (k *Kind[W, C]) UpdateStatus(base W, c C) ([]byte, error) {
	if k.writeStatus == nil {
		return nil, nil
	}
	return k.updateStatus(base, c, "status")
}

// updateStatus returns one part of the patch that a change of the status needs: metadata or status.
func (k *Kind[W, C]) updateStatus(base W, c C, part string) ([]byte, error) {
	was, _ := k.Read(base)
	x, after := &writer{keys: k.keys, generation: base.GetGeneration()}, k.clone(base)
	k.writeStatus(x, after, was, c)
	patch, err := difference(base, after)
	x.fail(err)
	for name := range patch {
		if name != part {
			delete(patch, name)
		}
	}
	return k.finish(x, patch, c)
}

func (k *Kind[W, C]) finish(x *writer, patch map[string]any, c C) ([]byte, error) {
	if x.err != nil || len(patch) == 0 {
		return nil, k.named(x.err, c)
	}
	lock(patch, c.ObjectMeta().Version)
	text, err := json.Marshal(patch)
	return text, k.named(err, c)
}

// named adds the object to an error.
func (k *Kind[W, C]) named(err error, c C) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s can't be written: %w", k.name, c.ObjectMeta().Key, err)
}
