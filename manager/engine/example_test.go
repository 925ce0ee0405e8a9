package engine_test

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// A kind of one's own: lamps, which are lit when they are on. The same steps run for real, and as a dry
// run.
func Example() {
	ctx := context.Background()
	key := object.Key{Namespace: "house", Name: "hall"}
	for _, dry := range []bool{true, false} {
		stored := store.NewMemory[*lamp](nil, nil)
		if _, err := stored.Create(ctx, &lamp{Meta: object.Meta{Key: key}, On: true}); err != nil {
			panic(err)
		}
		e := engine.New(engine.Options{
			DryRun: dry,
			Hooks: engine.Hooks{
				Event:  func(_ string, _ object.Key, _ engine.EventType, _, why string) { fmt.Println("reported:", why) },
				DryRun: func(_ string, _ object.Key, what, _, why string) { fmt.Println("not done:", what, "because", why) },
			},
		})
		kind := &lamps{lamps: stored}
		r := e.Reconciler(kind.kind())
		for change, err := range stored.Watch(ctx) { // a queue would stand here
			if err != nil {
				panic(err)
			}
			result, err := r.Reconcile(ctx, change.New.Key)
			if err != nil {
				panic(err)
			}
			fmt.Println("dry run:", dry, "result:", result.Why)
			break
		}
	}
	// Output:
	// not done: update status of lamp house/hall because it is on
	// dry run: true result: not done in a dry run: update status of lamp house/hall
	// reported: it is lit
	// dry run: false result: it is as it should be
}
