package driver_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
)

var (
	needMachine = []codes.Call{
		codes.CreateMachine, codes.InitializeMachine, codes.DeleteMachine, codes.GetMachineStatus, codes.UpdateMachine,
	}
	needClass    = append(slices.Clone(needMachine), codes.ListMachines, codes.GenerateMachineClassForMigration)
	needResponse = []codes.Call{codes.CreateMachine, codes.GetMachineStatus, codes.ListMachines, codes.GetVolumeIDs}
)

// A call without a required argument is not made.
func TestValidateRequests(t *testing.T) {
	for call := range codes.Calls() {
		for _, c := range []struct {
			machine *machine.Machine
			class   *machine.Class
			says    string
			refused bool
		}{
			{aMachine, aClass, "", false},
			{nil, aClass, "has no machine", slices.Contains(needMachine, call)},
			{&machine.Machine{}, aClass, "has no name", slices.Contains(needMachine, call)},
			{aMachine, nil, "class is missing", slices.Contains(needClass, call)},
		} {
			asked := false
			d := driver.Validate(&scripted{answer: func(_ context.Context, call codes.Call, _ any) (any, error) {
				asked = true
				return whole(call), nil
			}}, driver.ValidateOptions{})
			_, err := ask(t.Context(), d, call, c.machine, c.class, nil)
			if asked == c.refused || (codes.Of(err) == codes.InvalidArgument) != c.refused {
				t.Errorf("%s, where the request %s: asked %t, %v", call, c.says, asked, err)
			}
			if c.refused && (!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), call.String())) {
				t.Errorf("%s does not say that the request %s: %v", call, c.says, err)
			}
		}
	}
}

// If a required response is missing, the answer is INTERNAL. An optional one is then empty.
func TestValidateMissingResponses(t *testing.T) {
	d := driver.Validate(answering(nothing, nil), driver.ValidateOptions{})
	for call := range codes.Calls() {
		response, err := ask(t.Context(), d, call, aMachine, aClass, nil)
		want := codes.OK
		if slices.Contains(needResponse, call) {
			want = codes.Internal
		}
		if codes.Of(err) != want || (response == nil) != (want == codes.Internal) {
			t.Errorf("%s: %v, %v", call, response, err)
		}
	}
}

func TestValidateNames(t *testing.T) {
	for _, c := range []struct {
		id, node  string
		nodeNames bool
		want      codes.Code
		says      string
	}{
		{"id-1", "n-1", true, codes.OK, ""},
		{"id-1", "n-1", false, codes.OK, ""},
		{"id-1", "", false, codes.OK, ""},
		{"id-1", "", true, codes.Internal, "has no node name"},
		{"", "n-1", true, codes.Internal, "has no provider ID"},
		{"", "n-1", false, codes.Internal, "has no provider ID"},
		{"", "", true, codes.Internal, "has no provider ID"},
	} {
		responses := map[codes.Call]any{
			codes.CreateMachine: &driver.CreateMachineResponse{
				ProviderID: c.id, NodeName: c.node, LastKnownState: "half made",
			},
			codes.GetMachineStatus:  &driver.GetMachineStatusResponse{ProviderID: c.id, NodeName: c.node},
			codes.InitializeMachine: &driver.InitializeMachineResponse{ProviderID: c.id, NodeName: c.node},
		}
		d := driver.Validate(answering(func(call codes.Call) any { return responses[call] }, nil),
			driver.ValidateOptions{NodeNames: c.nodeNames})
		for call, sent := range responses {
			want, says := c.want, c.says
			if call == codes.InitializeMachine { // may leave out what is known already
				want, says = codes.OK, ""
			}
			response, err := ask(t.Context(), d, call, aMachine, aClass, nil)
			if codes.Of(err) != want || !strings.Contains(codes.Message(err), says) {
				t.Errorf("%s with ID %q, node %q: %v", call, c.id, c.node, err)
			}
			if response != sent {
				t.Errorf("%s with ID %q, node %q: the response is lost", call, c.id, c.node)
			}
		}
	}
}

// Errors pass with any response they have.
func TestValidateLeavesErrorsAlone(t *testing.T) {
	sent := &driver.CreateMachineResponse{LastKnownState: "half made"}
	failed := codes.New(codes.ResourceExhausted, "no cores are left")
	d := driver.Validate(answering(func(codes.Call) any { return sent }, failed), driver.ValidateOptions{NodeNames: true})
	if response, err := ask(t.Context(), d, codes.CreateMachine, aMachine, aClass, nil); response != sent || err != failed {
		t.Errorf("%v, %v", response, err)
	}
}

// A list passes as it is, or without its bad entries, which are returned separately. The driver's
// own objects are left alone.
func TestPropertyValidateLists(t *testing.T) {
	word := rapid.SampledFrom([]string{"", " ", "a", "b", "c", "d"})
	odd := func(id, name string) bool { return strings.TrimSpace(id) == "" || strings.TrimSpace(name) == "" }
	rapid.Check(t, func(t *rapid.T) {
		machines := rapid.MapOf(word, word).Draw(t, "machines")
		before := maps.Clone(machines)
		sent := &driver.ListMachinesResponse{Machines: machines}
		d := driver.Validate(answering(func(codes.Call) any { return sent }, nil), driver.ValidateOptions{})
		got, err := d.ListMachines(context.Background(), &driver.ListMachinesRequest{Class: aClass})
		if err != nil || !maps.Equal(machines, before) {
			t.Fatalf("%v became %v; %v", before, machines, err)
		}
		good, bad := maps.Clone(machines), maps.Clone(machines)
		maps.DeleteFunc(good, odd)
		maps.DeleteFunc(bad, func(id, name string) bool { return !odd(id, name) })
		if !maps.Equal(got.Machines, good) || !maps.Equal(got.Dropped, bad) {
			t.Fatalf("%v: %+v", machines, got)
		}
		if len(bad) == 0 && got != sent {
			t.Fatalf("a good list is not the driver's own: %v", got)
		}
	})
}

func TestValidateVolumeIDs(t *testing.T) {
	sent := &driver.GetVolumeIDsResponse{VolumeIDs: []string{"", "disk-1", " ", "disk-2", "disk-1"}}
	d := driver.Validate(answering(func(codes.Call) any { return sent }, nil), driver.ValidateOptions{})
	got, err := d.GetVolumeIDs(t.Context(), &driver.GetVolumeIDsRequest{})
	if err != nil || !slices.Equal(got.VolumeIDs, []string{"disk-1", "disk-2"}) {
		t.Errorf("%v, %v", got, err)
	}
	if !slices.Equal(sent.VolumeIDs, []string{"", "disk-1", " ", "disk-2", "disk-1"}) {
		t.Errorf("the driver's own list was changed: %q", sent.VolumeIDs)
	}
}
