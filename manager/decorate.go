package manager

import (
	"context"
	"log/slog"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/pools"
	"github.com/millwright-go/millwright/object"
)

// decorate wraps both drivers. A call goes through the hook, which sees what its caller gets; the
// set of calls, where it gets its deadline, and where its caller leaves it if it is overdue; the guard
// against panics; and the check of requests and answers.
func (o *Options) decorate(g *engine.Guard, c *driver.Calls) {
	guard := driver.Recover(func(p driver.Panic) { driverPanicked(g, p) })
	var counted []driver.Interceptor
	if tell := o.Hooks.Call; tell != nil {
		counted = append(counted, driver.Hook(o.Runtime.Now, func(_ context.Context, c driver.Call) { tell(c.Method.String(), c.Code, c.Took) }))
	}
	checked := driver.Validate(o.Driver, driver.ValidateOptions{NodeNames: o.Cluster != nil, Cut: o.cut})
	o.Driver = driver.Intercept(driver.Track(driver.Intercept(checked, guard), c), counted...)
	if !o.managesPools() {
		return
	}
	pools := pooldriver.Validate(o.Pools.Driver, o.cut)
	o.Pools.Driver = pooldriver.Intercept(pooldriver.Track(pooldriver.Intercept(pools, guard), c), counted...)
}

// driverPanicked tells of a panic of a driver, whose call is INTERNAL.
func driverPanicked(g *engine.Guard, p driver.Panic) {
	at := place(inDriver, Kind(p.Kind), p.Object)
	if p.Object == (object.Key{}) {
		at = place(inDriver, KindClass, p.Class)
	}
	g.Tell(context.Background(), at, engine.NewCaught(p.Method.String(), p.Value, p.Stack))
}

// defaultBootstrap reads the secrets of pools as they are, if nothing else makes them.
func (o *Options) defaultBootstrap() {
	if o.managesPools() && o.Pools.Bootstrap == nil {
		o.Pools.Bootstrap = pools.FromSecrets(o.Store.Secrets)
	}
}

// cut logs the whole of what is passed on cut.
func (o *Options) cut(ctx context.Context, call driver.CallInfo, whole string) {
	o.Log.LogAttrs(ctx, slog.LevelDebug, "the driver's answer was cut", slog.String("call", call.Method.String()),
		slog.String(call.Kind, call.Object.String()), slog.String("class", call.Class.String()), slog.String("whole", whole))
}
