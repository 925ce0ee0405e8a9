package driver_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

func TestUnimplementedNamesTheCall(t *testing.T) {
	for call := range codes.Calls() {
		response, err := ask(t.Context(), driver.Unimplemented{}, call, aMachine, aClass, nil)
		if response != nil || codes.Of(err) != codes.Unimplemented || !strings.Contains(err.Error(), call.String()) {
			t.Errorf("%s answers %v, %v", call, response, err)
		}
	}
}

// declaring is a driver with all optional interfaces.
type declaring struct{ scripted }

func (*declaring) UpdatableFields() []string    { return []string{"tags"} }
func (*declaring) ProviderIDsMatch() bool       { return true }
func (*declaring) FailAfter(codes.Call, error)  {}
func plain() driver.Driver                      { return answering(whole, nil) }
func (*declaring) Unwrap(string) (string, bool) { return "", false } // is no decorator's Unwrap

// opaque hides what is below it.
type opaque struct{ driver.Driver }

// decorators has one decorator of each kind. None changes a valid answer.
var decorators = map[string]func(driver.Driver) driver.Driver{
	"around": func(d driver.Driver) driver.Driver {
		return driver.Intercept(d, func(ctx context.Context, _ driver.CallInfo, next func(context.Context) error) error {
			return next(ctx)
		})
	},
	"deadline": func(d driver.Driver) driver.Driver {
		return driver.Intercept(d, driver.Deadline(driver.Timeouts{Default: time.Hour}))
	},
	"hook": func(d driver.Driver) driver.Driver {
		return driver.Intercept(d, driver.Hook(time.Now, func(context.Context, driver.Call) {}))
	},
	"limit": func(d driver.Driver) driver.Driver {
		return driver.Intercept(d, driver.Limit(driver.Limits{
			Concurrency: 1, Interval: time.Nanosecond, Burst: 9, Now: time.Now, After: time.After,
		}))
	},
	"recover": func(d driver.Driver) driver.Driver { return driver.Intercept(d, driver.Recover(nil)) },
	"validate": func(d driver.Driver) driver.Driver {
		return driver.Validate(d, driver.ValidateOptions{NodeNames: true})
	},
}

func stackOf(names []string, d driver.Driver) driver.Driver {
	for _, name := range names {
		d = decorators[name](d)
	}
	return d
}

func drawStack(t *rapid.T) []string {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"around", "deadline", "hook", "limit", "recover", "validate"}), 0, 8).
		Draw(t, "decorators")
}

// In any order and number, decorators pass on a valid response and every error as they are: the same
// pointer, the same error, hence the same code.
func TestPropertyDecoratorsKeepAnswers(t *testing.T) {
	errs := []error{
		nil, codes.New(codes.Uninitialized, "not yet"), codes.New(codes.OutOfRange, ""), codes.New(codes.OK, "contradiction"),
		codes.Wrap(codes.Unavailable, context.Canceled, "busy"), errors.New("plain"),
		context.DeadlineExceeded, (*codes.Error)(nil),
	}
	rapid.Check(t, func(t *rapid.T) {
		call := codes.Call(rapid.IntRange(0, 7).Draw(t, "call"))
		response, err := whole(call), rapid.SampledFrom(errs).Draw(t, "error")
		if err != nil && rapid.Bool().Draw(t, "without response") {
			response = nil
		}
		d := stackOf(drawStack(t), answering(func(codes.Call) any { return response }, err))
		gotResponse, gotErr := ask(context.Background(), d, call, aMachine, aClass, aSecret)
		if gotResponse != response || gotErr != err {
			t.Fatalf("%s answers %v and %v, not %v and %v", call, gotResponse, gotErr, response, err)
		}
	})
}

// As finds a driver and what it declares below any stack, and invents nothing.
func TestPropertyAsFindsThroughAnyStack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := drawStack(t)
		base := &declaring{}
		d := stackOf(names, base)
		if found, ok := driver.As[*declaring](d); !ok || found != base {
			t.Fatalf("the driver is not found below %q", names)
		}
		if fields := driver.UpdatableFields(d); len(fields) != 1 || !driver.ProviderIDsMatch(d) {
			t.Fatalf("below %q: fields %q, IDs match %t", names, fields, driver.ProviderIDsMatch(d))
		}
		if _, ok := driver.As[driver.FaultHook](d); !ok {
			t.Fatalf("the fault hook is not found below %q", names)
		}
		other := stackOf(names, plain())
		_, updates := driver.As[driver.FieldUpdater](other)
		_, matches := driver.As[driver.IDMatcher](other)
		_, hook := driver.As[driver.FaultHook](other)
		if updates || matches || hook || driver.UpdatableFields(other) != nil || driver.ProviderIDsMatch(other) {
			t.Fatalf("found below %q: %t %t %t", names, updates, matches, hook)
		}
	})
}

// outer overrides what the driver below declares.
type outer struct {
	driver.Driver
}

func (outer) UpdatableFields() []string { return []string{"size"} }
func (o outer) Unwrap() driver.Driver   { return o.Driver }

// endless unwraps to itself.
type endless struct{ driver.Unimplemented }

func (e endless) Unwrap() driver.Driver { return e }

func TestAs(t *testing.T) {
	base := &declaring{}
	if got := driver.UpdatableFields(driver.Intercept(outer{driver.Intercept(base, driver.Recover(nil))}, driver.Recover(nil))); got[0] != "size" {
		t.Errorf("the outermost layer does not decide: %q", got)
	}
	if driver.ProviderIDsMatch(driver.Intercept(opaque{base}, driver.Recover(nil))) {
		t.Error("found below a decorator without Unwrap")
	}
	if !driver.ProviderIDsMatch(base) {
		t.Error("not found at the top")
	}
	if _, ok := driver.As[driver.FieldUpdater](endless{}); ok {
		t.Error("found in a driver that has nothing")
	}
	if _, ok := driver.As[driver.FieldUpdater](nil); ok {
		t.Error("found in nil")
	}
	if _, ok := driver.As[driver.FieldUpdater](driver.Intercept(nil, driver.Recover(nil))); ok {
		t.Error("found below a decorator of nil")
	}
}

// Every call goes through every decorator to the same method, with the same request and context
// values.
func TestDecoratorsPassRequestsOn(t *testing.T) {
	type mark struct{}
	for name, decorate := range decorators {
		for call := range codes.Calls() {
			asked := 0
			d := decorate(&scripted{answer: func(ctx context.Context, got codes.Call, req any) (any, error) {
				asked++
				if got != call || ctx.Value(mark{}) != name {
					t.Errorf("%s: %s arrives as %s with %v", name, call, got, ctx.Value(mark{}))
				}
				if req, ok := req.(*driver.CreateMachineRequest); ok && (req.Machine != aMachine || req.Secret != aSecret) {
					t.Errorf("%s: another request arrives", name)
				}
				return whole(call), nil
			}})
			ctx := context.WithValue(t.Context(), mark{}, name)
			if _, err := ask(ctx, d, call, aMachine, aClass, aSecret); err != nil || asked != 1 {
				t.Errorf("%s: %s is asked %d times: %v", name, call, asked, err)
			}
		}
	}
}

// A nil request makes no decorator panic. It reaches the driver, except that Validate refuses it.
func TestDecoratorsWithoutARequest(t *testing.T) {
	for name, decorate := range decorators {
		for call := range codes.Calls() {
			want := codes.OK
			if name == "validate" {
				want = codes.InvalidArgument
			}
			err := askNil(t.Context(), decorate(plain()), call)
			if codes.Of(err) != want || err != nil && !strings.HasPrefix(codes.Message(err), call.String()+" ") {
				t.Errorf("%s: %s without a request: %v, want %s", name, call, err, want)
			}
		}
	}
}

// The driver of the example passes the suite, wrapped as it would be used.
func TestShelf(t *testing.T) {
	drivertest.Run(t, drivertest.Suite{New: func(*testing.T) drivertest.Setup {
		d := driver.Validate(&shelf{ids: map[string]string{}}, driver.ValidateOptions{NodeNames: true})
		return drivertest.Setup{Driver: d, Class: &machine.Class{Meta: object.Meta{Key: object.Key{Name: "small"}}}}
	}})
}

// A driver that meets its duties still does when it is decorated.
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
