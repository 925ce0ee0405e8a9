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

// interceptors are what each call to a provider goes through, the outermost first.
func (o *Options) interceptors(g *engine.Guard) []driver.Interceptor {
	all := []driver.Interceptor{
		driver.Recover(func(p driver.Panic) { driverPanicked(g, p) }), driver.Deadline(driver.Timeouts{Default: o.Tuning.CallTimeout}),
	}
	if tell := o.Hooks.Call; tell != nil {
		counted := driver.Hook(o.Runtime.Now, func(_ context.Context, c driver.Call) { tell(c.Method.String(), c.Code, c.Took) })
		all = append([]driver.Interceptor{counted}, all...)
	}
	return all
}

// driverPanicked tells of a panic of a driver, whose call is INTERNAL.
func driverPanicked(g *engine.Guard, p driver.Panic) {
	at := place(inDriver, Kind(p.Kind), p.Object)
	if p.Object == (object.Key{}) {
		at = place(inDriver, KindClass, p.Class)
	}
	g.Tell(context.Background(), at, engine.NewCaught(p.Method.String(), p.Value, p.Stack))
}

// decoratePools wraps the pool driver as New does the driver.
func (o *Options) decoratePools(interceptors []driver.Interceptor) {
	if !o.managesPools() {
		return
	}
	o.Pools.Driver = pooldriver.Intercept(pooldriver.Validate(o.Pools.Driver, o.cut), interceptors...)
	if o.Pools.Bootstrap == nil {
		o.Pools.Bootstrap = pools.FromSecrets(o.Store.Secrets)
	}
}

// cut logs the whole of what is passed on cut.
func (o *Options) cut(ctx context.Context, call driver.CallInfo, whole string) {
	o.Log.LogAttrs(ctx, slog.LevelDebug, "the driver's answer was cut", slog.String("call", call.Method.String()),
		slog.String(call.Kind, call.Object.String()), slog.String("class", call.Class.String()), slog.String("whole", whole))
}
