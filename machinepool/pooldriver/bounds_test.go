package pooldriver_test

import (
	"context"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
)

// TestPoolMessagesAreBounded: the message of an error, and Failure, are cut to a bounded length.
// Invariants: P42
func TestPoolMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("x", 20_000)
	for _, call := range machinepool.Calls() {
		var cut []string
		tell := func(_ context.Context, s driver.CallInfo, whole string) {
			cut = append(cut, s.Method.String()+" "+whole)
		}
		_, err := askPool(t.Context(), pooldriver.Validate(answeringPool(wholePool, codes.New(codes.Internal, long)), tell), call, &wholeAsk)
		require.Len(t, codes.Message(err), codes.MaxMessage)
		require.Len(t, cut, 1)
	}
	given := &pooldriver.GetPoolStatusResponse{GroupID: "g", Failure: "no\nroom" + long}
	response, err := askPool(t.Context(), pooldriver.Validate(answeringPool(func(machinepool.Call) any { return given }, nil), nil), machinepool.GetPoolStatus, &wholeAsk)
	require.NoError(t, err)
	failure := response.(*pooldriver.GetPoolStatusResponse).Failure
	require.Len(t, failure, codes.MaxMessage)
	require.True(t, strings.HasPrefix(failure, "no room"))
	require.True(t, strings.HasPrefix(given.Failure, "no\nroom"), "the driver's own answer is not changed")
}

// TestChangedPoolMessagesAreReported: if a Failure is changed on its way, cut gets the whole original.
func TestChangedPoolMessagesAreReported(t *testing.T) {
	var reported []string
	given := &pooldriver.GetPoolStatusResponse{GroupID: "g", Failure: "no\nroom"}
	d := pooldriver.Validate(answeringPool(func(machinepool.Call) any { return given }, nil), recordPool(&reported))
	_, err := askPool(t.Context(), d, machinepool.GetPoolStatus, &wholeAsk)
	require.NoError(t, err)
	require.Equal(t, []string{"GetPoolStatus no\nroom"}, reported)
}

func recordPool(reported *[]string) func(context.Context, driver.CallInfo, string) {
	return func(_ context.Context, s driver.CallInfo, whole string) {
		*reported = append(*reported, s.Method.String()+" "+whole)
	}
}

// TestPoolAnswersAreBounded: an answer whose fields are too long or too many is an error. A group ID is required
// in the calls that need one.
// Invariants: P42
func TestPoolAnswersAreBounded(t *testing.T) {
	id, note := strings.Repeat("i", driver.MaxID+1), strings.Repeat("s", driver.MaxNote+1)
	noted := &pooldriver.Response{GroupID: "g", LastKnownState: note}
	for _, c := range []struct {
		says    string
		call    machinepool.Call
		answer  any
		left    any
		refused bool
	}{
		{"a group ID", machinepool.CreatePool, &pooldriver.Response{GroupID: id}, &pooldriver.Response{}, true},
		{"a group ID", machinepool.GetPoolStatus, &pooldriver.GetPoolStatusResponse{GroupID: id}, &pooldriver.GetPoolStatusResponse{}, true},
		{"a group ID", machinepool.DeletePool, &pooldriver.Response{GroupID: id}, &pooldriver.Response{}, false},
		{"a last known state", machinepool.CreatePool, noted, &pooldriver.Response{GroupID: "g"}, false},
		{"a last known state", machinepool.ScalePool, noted, &pooldriver.Response{GroupID: "g"}, false},
		{"a last known state", machinepool.DeletePool, noted, &pooldriver.Response{GroupID: "g"}, false},
		{"a last known state", machinepool.GetPoolStatus,
			&pooldriver.GetPoolStatusResponse{GroupID: "g", LastKnownState: note}, &pooldriver.GetPoolStatusResponse{GroupID: "g"}, false},
		{"an instance's provider ID", machinepool.GetPoolStatus,
			&pooldriver.GetPoolStatusResponse{GroupID: "g", Instances: []machinepool.Instance{{ProviderID: "a"}, {ProviderID: id}}},
			&pooldriver.GetPoolStatusResponse{GroupID: "g", Instances: []machinepool.Instance{{ProviderID: "a"}}}, false},
	} {
		var reported []string
		d := pooldriver.Validate(answeringPool(func(machinepool.Call) any { return c.answer }, nil), recordPool(&reported))
		got, err := askPool(t.Context(), d, c.call, &wholeAsk)
		require.Equal(t, c.left, got, "%s %s", c.call, c.says)
		require.Len(t, reported, 1)
		require.Contains(t, reported[0], c.says+" of size")
		if !c.refused {
			require.NoError(t, err, "%s %s", c.call, c.says)
			continue
		}
		require.Equal(t, codes.Internal, codes.Of(err))
		require.Contains(t, err.Error(), "has "+c.says+" of size")
	}
}

// TestBlankGroupIDs: a blank ID counts as none.
func TestBlankGroupIDs(t *testing.T) {
	for _, blank := range []string{"", "  ", "\t"} {
		for call, answer := range map[machinepool.Call]any{
			machinepool.CreatePool:    &pooldriver.Response{GroupID: blank},
			machinepool.GetPoolStatus: &pooldriver.GetPoolStatusResponse{GroupID: blank},
		} {
			d := pooldriver.Validate(answeringPool(func(machinepool.Call) any { return answer }, nil), nil)
			_, err := askPool(t.Context(), d, call, &wholeAsk)
			require.Equal(t, codes.Internal, codes.Of(err), "%s %q", call, blank)
		}
	}
}

// TestRecoverPoolFromGoexit: a driver whose call ends its goroutine still gives its caller an answer, because
// Track waits in another goroutine.
func TestRecoverPoolFromGoexit(t *testing.T) {
	returned := 0
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, call := range machinepool.Calls() {
			d := pooldriver.Track(pooldriver.Intercept(&scriptedPool{answer: func(context.Context, machinepool.Call, any) (any, error) {
				runtime.Goexit()
				return wholePool(call), nil
			}}, driver.Recover(nil)), driver.NewCalls(driver.CallsOptions{}))
			if response, err := askPool(t.Context(), d, call, &wholeAsk); response != nil || codes.Of(err) != codes.Internal {
				t.Errorf("%s: %v, %v", call, response, err)
			}
			returned++
		}
	}()
	<-ended
	if returned != len(machinepool.Calls()) {
		t.Fatalf("%d calls returned", returned)
	}
}
