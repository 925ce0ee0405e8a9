package manager_test

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// A manager that only observes says what it would do first.
func ExampleOptions_observe() {
	ctx := context.Background()
	options := manager.InMemory(nil)
	options.Driver = drivertest.NewMemory(drivertest.MemoryOptions{})
	options.DryRun = true
	options.Policies.Safety = safety.Off() // one reconciler is called, and not what keeps the fleet
	options.Hooks.DryRun = func(_ manager.Kind, _ object.Key, what, reason, why string) {
		fmt.Printf("not done: %s (%s: %s)\n", what, reason, why)
	}

	set := &machineset.Set{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "web"}}}
	set.Spec.Replicas = 3
	set.Spec.Selector.Labels = map[string]string{"app": "web"}
	set.Spec.Template = machineset.Template{
		Labels: map[string]string{"app": "web"}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}},
	}
	set.AddFinalizer(machineset.Finalizer) // as if another manager had it
	set, _ = options.Store.Sets.Create(ctx, set)

	m, err := manager.New(options)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range m.Reconcilers() {
		if r.Kind() == manager.KindSet {
			_, err = r.Reconcile(ctx, set.Key)
			fmt.Println(err)
		}
	}
	// Output:
	// not done: update set fleet/web (Reserve: 0 of 3 machines: reserving 3 names, up to number 3)
	// <nil>
}
