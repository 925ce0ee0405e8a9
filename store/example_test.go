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
