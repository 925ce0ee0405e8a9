package driver_test

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// saying is a driver whose calls all fail with one error, validated; cut gets
// what was cut.
func saying(err error, cut *[]string) driver.Driver {
	return driver.Validate(answering(nothing, err), driver.ValidateOptions{
		Cut: func(_ context.Context, s driver.Subject, whole string) {
			*cut = append(*cut, s.Method.String()+" "+whole)
		},
	})
}

// TestMessagesAreBounded: of any call's error no more than a bound is passed on,
// whichever way the driver built it, and the whole is told.
func TestMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("€", 7000)
	for name, err := range map[string]error{
		"of the contract": codes.New(codes.ResourceExhausted, long),
		"wrapped":         fmt.Errorf("creating: %w", codes.New(codes.ResourceExhausted, long)),
		"with a cause":    codes.Wrap(codes.ResourceExhausted, errors.New(long), "no cores are left"),
	} {
		for call := range codes.Calls() {
			var cut []string
			_, got := ask(t.Context(), saying(err, &cut), call, aMachine, aClass, nil)
			require.Equal(t, codes.ResourceExhausted, codes.Of(got), name)
			require.LessOrEqual(t, len(got.Error()), codes.MaxMessage+40, name)
			require.LessOrEqual(t, len(codes.Message(got)), codes.MaxMessage, name)
			if name == "with a cause" {
				require.Equal(t, "no cores are left", codes.Message(got))
				require.Empty(t, cut)
				continue
			}
			require.True(t, strings.HasSuffix(codes.Message(got), "€ … (cut)"), codes.Message(got))
			require.Len(t, cut, 1)
			require.True(t, strings.HasPrefix(cut[0], call.String()+" ") && strings.HasSuffix(cut[0], long), name)
		}
	}
	fine := fmt.Errorf("creating: %w", codes.New(codes.NotFound, "no such VM"))
	_, got := ask(t.Context(), saying(fine, nil), codes.GetMachineStatus, aMachine, aClass, nil)
	require.Same(t, fine, got, "nothing was wrong with it")
}

// TestPoolMessagesAreBounded is the same for pools, Failure included.
func TestPoolMessagesAreBounded(t *testing.T) {
	long := strings.Repeat("x", 20_000)
	for _, call := range machinepool.Calls() {
		var cut []string
		tell := func(_ context.Context, s driver.PoolSubject, whole string) {
			cut = append(cut, s.Method.String()+" "+whole)
		}
		_, err := askPool(t.Context(), driver.ValidatePool(answeringPool(wholePool, codes.New(codes.Internal, long)), tell), call, &wholeAsk)
		require.Len(t, codes.Message(err), codes.MaxMessage)
		require.Len(t, cut, 1)
	}
	given := &driver.GetPoolStatusResponse{GroupID: "g", Failure: "no\nroom" + long}
	response, err := askPool(t.Context(), driver.ValidatePool(answeringPool(func(machinepool.Call) any { return given }, nil), nil), machinepool.GetPoolStatus, &wholeAsk)
	require.NoError(t, err)
	failure := response.(*driver.GetPoolStatusResponse).Failure
	require.Len(t, failure, codes.MaxMessage)
	require.True(t, strings.HasPrefix(failure, "no room"))
	require.True(t, strings.HasPrefix(given.Failure, "no\nroom"), "the driver's own answer is not changed")
}

// TestAnswersAreBounded: a part of an answer that is too large is left out, and
// the error names it; beside an error of the driver's it is left out, too.
func TestAnswersAreBounded(t *testing.T) {
	id, name, note := strings.Repeat("i", driver.MaxID), strings.Repeat("n", driver.MaxName), strings.Repeat("s", driver.MaxNote)
	many := make([]machine.Address, driver.MaxAddresses)
	fits := &driver.CreateMachineResponse{ProviderID: id, NodeName: name, Addresses: many, LastKnownState: note}
	got, err := driver.Validate(answering(func(codes.Call) any { return fits }, nil), driver.ValidateOptions{}).
		CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: aMachine, Class: aClass})
	require.NoError(t, err)
	require.Same(t, fits, got)

	for says, c := range map[string]struct {
		call   codes.Call
		answer any
		left   any
	}{
		"a provider ID of size 1025": {codes.CreateMachine,
			&driver.CreateMachineResponse{ProviderID: id + "i", LastKnownState: "kept"}, &driver.CreateMachineResponse{LastKnownState: "kept"}},
		"a node name of size 254": {codes.GetMachineStatus,
			&driver.GetMachineStatusResponse{ProviderID: "kept", NodeName: name + "n"}, &driver.GetMachineStatusResponse{ProviderID: "kept"}},
		"a number of addresses of size 65": {codes.InitializeMachine,
			&driver.InitializeMachineResponse{ProviderID: "kept", Addresses: append(many, machine.Address{})}, &driver.InitializeMachineResponse{ProviderID: "kept"}},
		"an address of size 254": {codes.GetMachineStatus,
			&driver.GetMachineStatusResponse{ProviderID: "kept", Addresses: []machine.Address{{Value: name + "n"}}}, &driver.GetMachineStatusResponse{ProviderID: "kept"}},
		"a last known state of size 32769": {codes.DeleteMachine,
			&driver.DeleteMachineResponse{LastKnownState: note + "s"}, &driver.DeleteMachineResponse{}},
		"last known state of size 32769": {codes.UpdateMachine,
			&driver.UpdateMachineResponse{LastKnownState: note + "s"}, &driver.UpdateMachineResponse{}},
		"a provider ID of size 1026": {codes.ListMachines,
			&driver.ListMachinesResponse{Machines: map[string]string{id + "ii": "m-1"}}, &driver.ListMachinesResponse{}},
		"a machine's name of size 254": {codes.ListMachines,
			&driver.ListMachinesResponse{Machines: map[string]string{"i": name + "n"}}, &driver.ListMachinesResponse{}},
		"a volume ID of size 1025": {codes.GetVolumeIDs,
			&driver.GetVolumeIDsResponse{VolumeIDs: []string{"v", id + "i"}}, &driver.GetVolumeIDsResponse{}},
	} {
		for _, failure := range []error{nil, codes.New(codes.Unavailable, "down")} {
			d := driver.Validate(answering(func(codes.Call) any { return c.answer }, failure), driver.ValidateOptions{})
			got, err := ask(t.Context(), d, c.call, aMachine, aClass, nil)
			require.Equal(t, c.left, got, says)
			if failure != nil {
				require.Same(t, failure, err)
				continue
			}
			require.Equal(t, codes.Internal, codes.Of(err), says)
			require.Contains(t, err.Error(), c.call.String()+" has ")
			require.Contains(t, err.Error(), says)
		}
	}
}

// TestPoolAnswersAreBounded is the same for pools.
func TestPoolAnswersAreBounded(t *testing.T) {
	id := strings.Repeat("i", driver.MaxID+1)
	for says, c := range map[string]struct {
		call   machinepool.Call
		answer any
		left   any
	}{
		"a group ID": {machinepool.CreatePool, &driver.PoolResponse{GroupID: id}, &driver.PoolResponse{}},
		"a last known state": {machinepool.ScalePool,
			&driver.PoolResponse{GroupID: "g", LastKnownState: strings.Repeat("s", driver.MaxNote+1)}, &driver.PoolResponse{GroupID: "g"}},
		"an instance's provider ID": {machinepool.GetPoolStatus,
			&driver.GetPoolStatusResponse{GroupID: "g", Instances: []machinepool.Instance{{ProviderID: id}}}, &driver.GetPoolStatusResponse{GroupID: "g"}},
	} {
		got, err := askPool(t.Context(), driver.ValidatePool(answeringPool(func(machinepool.Call) any { return c.answer }, nil), nil), c.call, &wholeAsk)
		require.Equal(t, c.left, got, says)
		require.Equal(t, codes.Internal, codes.Of(err))
		require.Contains(t, err.Error(), "has "+says+" of size")
	}
}

// TestBlankIDs: one rule for all calls: what is blank is none.
func TestBlankIDs(t *testing.T) {
	for _, blank := range []string{"", "  ", "\t"} {
		for call, answer := range map[codes.Call]any{
			codes.CreateMachine:    &driver.CreateMachineResponse{ProviderID: blank, NodeName: "n"},
			codes.GetMachineStatus: &driver.GetMachineStatusResponse{ProviderID: blank, NodeName: "n"},
		} {
			d := driver.Validate(answering(func(codes.Call) any { return answer }, nil), driver.ValidateOptions{})
			_, err := ask(t.Context(), d, call, aMachine, aClass, nil)
			require.Equal(t, codes.Internal, codes.Of(err), "%s %q", call, blank)
		}
		d := driver.Validate(answering(func(codes.Call) any { return &driver.CreateMachineResponse{ProviderID: "i", NodeName: blank} }, nil), driver.ValidateOptions{NodeNames: true})
		_, err := ask(t.Context(), d, codes.CreateMachine, aMachine, aClass, nil)
		require.Equal(t, codes.Internal, codes.Of(err))
		for call, answer := range map[machinepool.Call]any{
			machinepool.CreatePool:    &driver.PoolResponse{GroupID: blank},
			machinepool.GetPoolStatus: &driver.GetPoolStatusResponse{GroupID: blank},
		} {
			d := driver.ValidatePool(answeringPool(func(machinepool.Call) any { return answer }, nil), nil)
			_, err := askPool(t.Context(), d, call, &wholeAsk)
			require.Equal(t, codes.Internal, codes.Of(err), "%s %q", call, blank)
		}
	}
}

// TestSecretsAreTakenOut: values of the request's secret don't come back in
// messages, in whatever form they are likely to be printed; a note is the
// driver's, and stays.
func TestSecretsAreTakenOut(t *testing.T) {
	value := "p4ss/word with=more\nlines€"
	secret := &machine.Secret{
		Meta: object.Meta{Key: object.Key{Name: "boot"}},
		Data: map[string][]byte{
			"password": []byte(value), "prefix": []byte("p4ss/word with"), "short": []byte("seven.."), "padded": []byte(" padded-value\n"),
			"region": []byte("europe-west-1"),
		},
	}
	class := &machine.Class{Meta: aClass.Meta, ProviderSpec: []byte(`{"region": "europe-west-1"}`)}
	for form, shown := range map[string]string{
		value:                             "[value of password]",
		url.QueryEscape(value):            "[value of password]",
		url.PathEscape(value):             "[value of password]",
		hex.EncodeToString([]byte(value)): "[value of password]",
		`p4ss/word with=more\nlines€`:     "[value of password]",
		"p4ss/word with":                  "[value of prefix]",
		"padded-value":                    "[value of padded]",
		"seven..":                         "seven..",
		"europe-west-1":                   "europe-west-1",
		base64.RawURLEncoding.EncodeToString([]byte(value)): "[value of password]",
		base64.RawStdEncoding.EncodeToString([]byte(value)): "[value of password]",
	} {
		for name, err := range map[string]error{
			"plain":   errors.New("denied: <" + form + "> and " + form),
			"typed":   codes.New(codes.PermissionDenied, "denied: <"+form+"> and "+form),
			"a cause": codes.Wrap(codes.PermissionDenied, errors.New("<"+form+">"), "denied: <"+form+"> and "+form),
		} {
			for call := range codes.Calls() {
				if call == codes.GetVolumeIDs || call == codes.GenerateMachineClassForMigration {
					continue // there is no secret in these
				}
				d := driver.Validate(answering(nothing, err), driver.ValidateOptions{})
				_, got := ask(t.Context(), d, call, aMachine, class, secret)
				require.Equal(t, "denied: <"+shown+"> and "+shown, strings.ReplaceAll(codes.Message(got), "\n", " "), "%s %s", call, name)
				require.Equal(t, codes.Of(err), codes.Of(got))
				if shown != form {
					require.NotContains(t, got.Error(), form)
				}
			}
		}
	}
	note := &driver.DeleteMachineResponse{LastKnownState: "asked with " + value}
	d := driver.Validate(answering(func(codes.Call) any { return note }, nil), driver.ValidateOptions{})
	got, err := d.DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: aMachine, Class: class, Secret: secret})
	require.NoError(t, err)
	require.Same(t, note, got)
}

// TestConfidentialTexts: what the caller names comes back in no message and no note.
func TestConfidentialTexts(t *testing.T) {
	ctx := driver.WithConfidential(driver.WithConfidential(t.Context(), "abc.def/ghi", "a token"), "", "nothing")
	for _, form := range []string{"abc.def/ghi", url.QueryEscape("abc.def/ghi")} {
		answer := &driver.CreateMachineResponse{ProviderID: "i", LastKnownState: "booted with " + form}
		d := driver.Validate(answering(func(codes.Call) any { return answer }, errors.New("bad "+form)), driver.ValidateOptions{})
		got, err := d.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: aMachine, Class: aClass})
		require.Equal(t, "bad a token", codes.Message(err))
		require.Equal(t, "booted with a token", got.LastKnownState)
		require.Equal(t, "booted with "+form, answer.LastKnownState)
	}
}

// TestMessagesAreOneLine: what would move a terminal's cursor comes back as text.
func TestMessagesAreOneLine(t *testing.T) {
	d := driver.Validate(answering(nothing, codes.New(codes.Internal, "<html>\n\x1b[2J\u202egone")), driver.ValidateOptions{})
	_, err := ask(t.Context(), d, codes.CreateMachine, aMachine, aClass, nil)
	require.Equal(t, "<html> \ufffd[2J\ufffdgone", codes.Message(err))
}
