package pooldriver_test

import (
	"context"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/machinepool/pooldriver/pooldrivertest"
	"github.com/millwright-go/millwright/object"
)

// A group is created, and grows. The interceptor is one of package driver: the same serves machines
// and groups.
func Example() {
	ctx := context.Background()
	provider := pooldrivertest.NewMemory(pooldrivertest.MemoryOptions{}) // your driver here
	d := pooldriver.Intercept(provider, driver.Hook(time.Now, func(_ context.Context, c driver.Call) {
		fmt.Println(c.Method, c.Object, c.Code)
	}))

	class := provider.Class(object.Key{Namespace: "fleet", Name: "small"}, drivertest.MemorySpec{Cluster: "blue", Size: "s"})
	pool := &machinepool.Pool{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "batch"}}}
	request := pooldriver.Request{Pool: pool, Class: class, Secret: provider.Secret(object.Key{Namespace: "fleet", Name: "key"})}
	made, err := d.CreatePool(ctx, &pooldriver.CreatePoolRequest{Request: request, Replicas: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	pool.Status.GroupID = made.GroupID
	_, err = d.ScalePool(ctx, &pooldriver.ScalePoolRequest{Request: request, To: 3})
	fmt.Println(err, provider.Groups(), "group of", provider.Count())
	// Output:
	// CreatePool fleet/batch OK
	// ScalePool fleet/batch OK
	// <nil> 1 group of 3
}
