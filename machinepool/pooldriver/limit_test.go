package pooldriver_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
)

// Calls for machines and for pools wait for each other if they share a limit.
func TestLimitIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := driver.Limit(driver.Limits{Concurrency: 1})
		under, most := 0, 0
		counted := func(ctx context.Context, _ driver.CallInfo, next func(context.Context) error) error {
			under++
			most = max(most, under)
			<-time.After(time.Second)
			under--
			return next(ctx)
		}
		machines := driver.Intercept(driver.Unimplemented{}, shared, counted)
		pools := pooldriver.Intercept(pooldriver.UnimplementedPools{}, shared, counted)
		began := time.Now()
		for range 2 {
			go func() { _, _ = machines.ListMachines(t.Context(), &driver.ListMachinesRequest{}) }()
			go func() { _, _ = askPool(t.Context(), pools, machinepool.ScalePool, &wholeAsk) }()
		}
		synctest.Wait()
		if _, err := askPool(t.Context(), pools, machinepool.GetPoolStatus, &wholeAsk); codes.Of(err) != codes.Unimplemented {
			t.Errorf("the last in line is answered %v", err)
		}
		if took := time.Since(began); most != 1 || took != 5*time.Second {
			t.Errorf("%d calls at once, five took %s", most, took)
		}
	})
}

// A call whose turn does not come in time is not made, and the error says so.
func TestLimitedPoolsGiveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := pooldriver.Intercept(pooldriver.UnimplementedPools{}, driver.Limit(driver.Limits{Interval: time.Minute, Now: time.Now, After: time.After}))
		if _, err := askPool(t.Context(), d, machinepool.ScalePool, &wholeAsk); codes.Of(err) != codes.Unimplemented {
			t.Errorf("the first call is answered %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := askPool(ctx, d, machinepool.ScalePool, &wholeAsk)
		if codes.Of(err) != codes.DeadlineExceeded || codes.Message(err) == "" {
			t.Errorf("the second is answered %v", err)
		}
	})
	clockless := pooldriver.Intercept(pooldriver.UnimplementedPools{}, driver.Limit(driver.Limits{Interval: time.Minute}))
	if _, err := askPool(t.Context(), clockless, machinepool.ScalePool, &wholeAsk); codes.Of(err) != codes.Internal {
		t.Errorf("an interval without a clock is answered %v", err)
	}
	single := pooldriver.Intercept(pooldriver.UnimplementedPools{}, driver.Limit(driver.Limits{Calls: []driver.Method{codes.CreateMachine}, Interval: time.Minute}))
	if _, err := askPool(t.Context(), single, machinepool.ScalePool, &wholeAsk); codes.Of(err) != codes.Unimplemented {
		t.Errorf("a limit of another call is answered %v", err)
	}
}
