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
	"github.com/millwright-go/millwright/object"
)

// saying returns a validated driver whose calls all fail with err. What Validate passes to Cut is
// appended to cut.
func saying(err error, cut *[]string) driver.Driver {
	return driver.Validate(answering(nothing, err), driver.ValidateOptions{
		Cut: func(_ context.Context, s driver.CallInfo, whole string) {
			*cut = append(*cut, s.Method.String()+" "+whole)
		},
	})
}

// TestMessagesAreBounded: the message of any call's error is cut to codes.MaxMessage, in whichever way
// the driver built the error. Cut gets the whole.
// Invariants: P42
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
			} else {
				require.True(t, strings.HasSuffix(codes.Message(got), "€ … (cut)"), codes.Message(got))
			}
			require.Len(t, cut, 1)
			require.True(t, strings.HasPrefix(cut[0], call.String()+" ") && strings.HasSuffix(cut[0], long), name)
		}
	}
	fine := fmt.Errorf("creating: %w", codes.New(codes.NotFound, "no such VM"))
	_, got := ask(t.Context(), saying(fine, nil), codes.GetMachineStatus, aMachine, aClass, nil)
	require.Same(t, fine, got, "an error that needs no change was changed")
}

// TestChangedMessagesAreReported: Cut gets the whole of a changed error, even of a short one, without
// secrets.
// Invariants: P42
func TestChangedMessagesAreReported(t *testing.T) {
	for whole, err := range map[string]error{
		"two\nlines":                  codes.New(codes.Internal, "two\nlines"),
		"no: a\nb":                    codes.Wrap(codes.Internal, errors.New("a\nb"), "no"),
		"denied: [value of password]": codes.New(codes.Internal, "denied: correct horse"),
	} {
		var cut []string
		secret := &machine.Secret{Data: map[string][]byte{"password": []byte("correct horse")}}
		_, got := ask(t.Context(), saying(err, &cut), codes.CreateMachine, aMachine, aClass, secret)
		require.NotContains(t, got.Error(), "\n")
		require.Len(t, cut, 1, whole)
		require.True(t, strings.HasSuffix(cut[0], whole), cut[0])
	}
}

// oversized is an answer with a part that is too large, what Validate leaves of it, and whether an OK
// answer becomes an error.
type oversized struct {
	call    codes.Call
	answer  any
	left    any
	refused bool
}

func oversizedAnswers() map[string]oversized {
	id, name, note := strings.Repeat("i", driver.MaxID), strings.Repeat("n", driver.MaxName), strings.Repeat("s", driver.MaxNote)
	many, kept := make([]machine.Address, driver.MaxAddresses), []machine.Address{{Type: "IP", Value: "::1"}}
	const mark = " … (cut)"
	return map[string]oversized{
		"a provider ID of size 1025": {codes.CreateMachine,
			&driver.CreateMachineResponse{ProviderID: id + "i", LastKnownState: "kept"}, &driver.CreateMachineResponse{LastKnownState: "kept"}, true},
		"a node name of size 254": {codes.GetMachineStatus,
			&driver.GetMachineStatusResponse{ProviderID: "kept", NodeName: name + "n"}, &driver.GetMachineStatusResponse{ProviderID: "kept"}, true},
		"a volume ID of size 1025": {codes.GetVolumeIDs,
			&driver.GetVolumeIDsResponse{VolumeIDs: []string{"v", id + "i"}}, &driver.GetVolumeIDsResponse{}, true},
		"a number of addresses of size 65": {codes.InitializeMachine,
			&driver.InitializeMachineResponse{ProviderID: "kept", Addresses: append(many, machine.Address{})},
			&driver.InitializeMachineResponse{ProviderID: "kept", Addresses: many}, false},
		"an address of size 254": {codes.GetMachineStatus,
			&driver.GetMachineStatusResponse{ProviderID: "kept", Addresses: append([]machine.Address{{Value: name + "n"}}, kept...)},
			&driver.GetMachineStatusResponse{ProviderID: "kept", Addresses: kept}, false},
		"an address of size 255": {codes.CreateMachine,
			&driver.CreateMachineResponse{ProviderID: "kept", Addresses: []machine.Address{{Type: name + "nn"}}},
			&driver.CreateMachineResponse{ProviderID: "kept"}, false},
		"a last known state of size 32770": {codes.CreateMachine,
			&driver.CreateMachineResponse{ProviderID: "kept", LastKnownState: note + "ss"}, &driver.CreateMachineResponse{ProviderID: "kept"}, false},
		"a last known state of size 32769": {codes.DeleteMachine,
			&driver.DeleteMachineResponse{LastKnownState: note + "s"}, &driver.DeleteMachineResponse{}, false},
		"last known state of size 32769": {codes.UpdateMachine,
			&driver.UpdateMachineResponse{LastKnownState: note + "s"}, &driver.UpdateMachineResponse{}, false},
		"a provider ID of size 1026": {codes.ListMachines,
			&driver.ListMachinesResponse{Machines: map[string]string{id + "ii": "m-1", "i": "m-2"}},
			&driver.ListMachinesResponse{Machines: map[string]string{"i": "m-2"}, Dropped: map[string]string{id[:driver.MaxID-len(mark)] + mark: "m-1"}}, false},
		"a machine's name of size 254": {codes.ListMachines,
			&driver.ListMachinesResponse{Machines: map[string]string{"i": name + "n", "j": "m-2"}},
			&driver.ListMachinesResponse{Machines: map[string]string{"j": "m-2"}, Dropped: map[string]string{"i": name[:driver.MaxName-len(mark)] + mark}}, false},
	}
}

// TestAnswersAreBounded: a part of an answer that is too large is left out and reported, beside an
// error and beside OK. OK becomes INTERNAL only if the part is required. The driver's own objects
// are left alone.
// Invariants: P42
func TestAnswersAreBounded(t *testing.T) {
	fits := &driver.CreateMachineResponse{
		ProviderID: strings.Repeat("i", driver.MaxID), NodeName: strings.Repeat("n", driver.MaxName),
		Addresses: make([]machine.Address, driver.MaxAddresses), LastKnownState: strings.Repeat("s", driver.MaxNote),
	}
	got, err := driver.Validate(answering(func(codes.Call) any { return fits }, nil), driver.ValidateOptions{}).
		CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: aMachine, Class: aClass})
	require.NoError(t, err)
	require.Same(t, fits, got)

	given := oversizedAnswers()
	for says, c := range oversizedAnswers() {
		for _, failure := range []error{nil, codes.New(codes.Unavailable, "down")} {
			var reported []string
			d := driver.Validate(answering(func(codes.Call) any { return c.answer }, failure), driver.ValidateOptions{
				Cut: func(_ context.Context, s driver.CallInfo, whole string) {
					reported = append(reported, s.Method.String()+" "+whole)
				},
			})
			got, err := ask(t.Context(), d, c.call, aMachine, aClass, nil)
			require.Equal(t, c.left, got, says)
			require.Equal(t, given[says].answer, c.answer, "the driver's own answer is not changed")
			require.Len(t, reported, 1, says)
			require.Contains(t, reported[0], says)
			require.Less(t, len(reported[0]), 120, "the report has contents of the part")
			switch {
			case failure != nil:
				require.Same(t, failure, err)
			case c.refused:
				require.Equal(t, codes.Internal, codes.Of(err), says)
				require.Contains(t, err.Error(), c.call.String()+" has "+says)
			default:
				require.NoError(t, err, says)
			}
		}
	}
}

// TestBlankIDs: in every call, a blank ID or node name counts as missing.
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
	}
}

// TestSecretsAreTakenOut: values of the request's secret don't come back in messages, in any form
// in which they are likely to be printed. A note is the driver's, and stays.
// Invariants: P42
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

// TestPartsOfSecretsAreTakenOut: further forms of values, strings within JSON values, and lines of
// values don't come back in messages either. Parts of less than 16 bytes stay.
// Invariants: P42
func TestPartsOfSecretsAreTakenOut(t *testing.T) {
	value, account := "<p4ss>&word", "{\n  \"key\": [\"-BEGIN-\\nMIIEvgIBADANBgkqh\\n\"],\n  \"id\": \"0123456789abcdef\", \"kind\": \"robot of ours\"\n}\n"
	script := "#!/bin/sh\n  join --token abcdef.0123456789\r\nreboot\n"
	secret := &machine.Secret{Data: map[string][]byte{"password": []byte(value), "account": []byte(account), "script": []byte(script)}}
	for form, shown := range map[string]string{
		`\u003cp4ss\u003e\u0026word`:                                     "[value of password]",
		fmt.Sprint([]byte(value)):                                        "[value of password]",
		strings.ToUpper(hex.EncodeToString([]byte(value))):               "[value of password]",
		"0123456789abcdef":                                               "[value of account]",
		base64.RawStdEncoding.EncodeToString([]byte("0123456789abcdef")): "[value of account]",
		"-BEGIN-\nMIIEvgIBADANBgkqh\n":                                   "[value of account]",
		"MIIEvgIBADANBgkqh":                                              "[value of account]",
		"join --token abcdef.0123456789":                                 "[value of script]",
		"robot of ours":                                                  "robot of ours",
		"reboot":                                                         "reboot",
	} {
		d := driver.Validate(answering(nothing, errors.New("denied: <"+form+">")), driver.ValidateOptions{})
		_, got := ask(t.Context(), d, codes.CreateMachine, aMachine, aClass, secret)
		require.Equal(t, "denied: <"+shown+">", codes.Message(got))
	}
	shows := &machine.Class{Meta: aClass.Meta, ProviderSpec: []byte(`{"account": "0123456789abcdef"}`)}
	d := driver.Validate(answering(nothing, errors.New("no 0123456789abcdef")), driver.ValidateOptions{})
	_, got := ask(t.Context(), d, codes.CreateMachine, aMachine, shows, secret)
	require.Equal(t, "no 0123456789abcdef", codes.Message(got))
}

// TestConfidentialTexts: the caller's confidential text comes back in no message and no note.
// Invariants: P42
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

// TestMessagesAreOneLine: control characters of a terminal come back as text.
func TestMessagesAreOneLine(t *testing.T) {
	d := driver.Validate(answering(nothing, codes.New(codes.Internal, "<html>\n\x1b[2J\u202egone")), driver.ValidateOptions{})
	_, err := ask(t.Context(), d, codes.CreateMachine, aMachine, aClass, nil)
	require.Equal(t, "<html> \ufffd[2J\ufffdgone", codes.Message(err))
}
