package driver_test

import (
	"context"
	"testing"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// The suite on the driver of the example, wrapped as it will be used.
func TestShelf(t *testing.T) {
	drivertest.Run(t, drivertest.Suite{New: func(*testing.T) drivertest.Setup {
		d := driver.Validate(&shelf{ids: map[string]string{}}, driver.ValidateOptions{NodeNames: true})
		return drivertest.Setup{Driver: d, Class: &machine.Class{Meta: object.Meta{Key: object.Key{Name: "small"}}}}
	}})
}

// No decorator breaks a driver that meets its duties.
func TestDecoratedMemory(t *testing.T) {
	drivertest.Run(t, drivertest.Suite{New: func(*testing.T) drivertest.Setup {
		m := drivertest.NewMemory(drivertest.MemoryOptions{Token: "a-token-of-some-length", NeedsInitialization: true})
		limit := driver.Limit(driver.Limits{
			Concurrency: 3, Interval: time.Microsecond, Burst: 2, Now: time.Now, After: time.After,
		})
		d := driver.Intercept(m, limit, driver.Deadline(driver.Timeouts{Default: time.Minute}), driver.Recover(nil))
		d = driver.Validate(d, driver.ValidateOptions{NodeNames: true})
		d = driver.Intercept(d, driver.Hook(time.Now, func(context.Context, driver.Call) {}))
		class := func(cluster, size string) *machine.Class {
			return m.Class(object.Key{Name: cluster + size}, drivertest.MemorySpec{Cluster: cluster, Size: size})
		}
		return drivertest.Setup{
			Driver: d, Class: class("blue", "small"), Secret: m.Secret(object.Key{Name: "boot"}),
			Different: class("blue", "large"), OtherCluster: class("green", "small"), Invalid: class("blue", ""),
			NeedsInitialization: true, Count: m.Count,
		}
	}})
}
