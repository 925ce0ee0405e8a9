package store_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

func Example() {
	ctx := context.Background()
	noon := func() time.Time { return time.Date(2031, 5, 7, 12, 0, 0, 0, time.UTC) }
	var machines store.Collection[*storetest.Object] = store.NewMemory(noon, storetest.Indexes())

	created, _ := machines.Create(ctx, &storetest.Object{
		Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "a"}},
		Spec: storetest.Spec{Replicas: 1, Zones: []string{"north"}},
	})

	// Stored objects are shared: clone before changing anything.
	mine, theirs := created.Clone(), created.Clone()
	mine.Spec.Replicas = 2
	theirs.Spec.Replicas = 3
	updated, _ := machines.Update(ctx, mine)
	fmt.Println(updated.UID, "generation", updated.Generation)

	// The second write was based on what the first has replaced.
	_, err := machines.Update(ctx, theirs)
	fmt.Println(err, errors.Is(err, store.ErrConflict))

	north, _ := machines.List(ctx, store.Query{Index: storetest.ByZone, Value: "north"})
	fmt.Println(len(north), "in the north")

	// Output:
	// object-1 generation 2
	// update fleet/a: conflict true
	// 1 in the north
}

// Edit is for a program that changes an object which others write too. CreateOrEdit also creates it.
func ExampleEdit() {
	ctx := context.Background()
	var machines store.Collection[*storetest.Object] = store.NewMemory[*storetest.Object](nil, storetest.Indexes())
	a := &storetest.Object{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "a"}}}

	scale := func(to int64) func(*storetest.Object) error {
		return func(o *storetest.Object) error { o.Spec.Replicas = to; return nil }
	}
	created, _ := store.CreateOrEdit(ctx, machines, a, scale(2))
	edited, _ := store.Edit(ctx, machines, a.Key, scale(5))
	fmt.Println(created.Spec.Replicas, "then", edited.Spec.Replicas)

	_, err := store.Edit(ctx, machines, object.Key{Namespace: "fleet", Name: "b"}, scale(1))
	fmt.Println(errors.Is(err, store.ErrNotFound))

	// Output:
	// 2 then 5
	// true
}
