package app

import (
	"io"
	"reflect"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/object"
)

// durations generates valid durations of settings.
var durations = rapid.Custom(func(t *rapid.T) time.Duration {
	return time.Duration(rapid.IntRange(0, 200).Draw(t, "h"))*time.Hour + time.Duration(rapid.IntRange(0, 59).Draw(t, "m"))*time.Minute +
		time.Duration(rapid.IntRange(0, 59999).Draw(t, "ms"))*time.Millisecond
})

// TestDefaults: without any setting the policies are the defaults. Only the annotation for the cluster
// autoscaler is on, as in machine-controller-manager.
func TestDefaults(t *testing.T) {
	r, err := sources{}.read(t.TempDir(), nil)
	require.NoError(t, err)
	want := defaultRules()
	want.deployment.RolloutMarks.Keep = true
	require.Equal(t, want, r.rules)
}

// otherValue returns a valid value of a setting that is not its present one.
func otherValue(t *testing.T, flag *kong.Flag) string {
	switch v := flag.Target.Interface().(type) {
	case time.Duration:
		return flagText(v + 2*time.Minute)
	case bool:
		return flagText(!v)
	case int:
		return flagText(v + 1)
	case int32:
		return flagText(v + 1)
	case rollout.IntOrPercent:
		return "17"
	case []string:
		return "Other"
	}
	switch flag.Name {
	case "machine-safety-orphan-prefix":
		return "fleet-"
	case "set-age-order":
		return "Newest"
	case "drain-at-timeout":
		return "Leave"
	}
	t.Fatalf("no other value of %s", flag.Name)
	return ""
}

// TestEachPolicySetting: a setting changes the fields that its tag names, and no others.
func TestEachPolicySetting(t *testing.T) {
	base, err := sources{}.read(t.TempDir(), nil)
	require.NoError(t, err)
	count := 0
	for _, flag := range base.parser.Model.Flags {
		tag := flag.Tag.Get("policy")
		if tag == "" {
			continue
		}
		count++
		value := otherValue(t, flag)
		r, err := sources{args: []string{"--" + flag.Name + "=" + value}}.read(t.TempDir(), nil)
		require.NoError(t, err, flag.Name)
		require.NotEqual(t, base.rules, r.rules, flag.Name)
		fields, err := r.rules.fields(tag)
		require.NoError(t, err)
		before, err := base.rules.fields(tag)
		require.NoError(t, err)
		for i, field := range fields {
			require.Equal(t, value, flagText(field.Interface()), flag.Name)
			field.Set(before[i])
		}
		require.Equal(t, base.rules, r.rules, "%s changes a field that its tag does not name", flag.Name)
	}
	require.Greater(t, count, 35)
}

// TestZeroOfASettingIsOff: 0 becomes object.Off in a policy, unless the default of the library is 0.
func TestZeroOfASettingIsOff(t *testing.T) {
	r, err := sources{args: []string{
		"--machine-grace=0s", "--machine-hook-timeout=0s", "--set-crash-loop-base=0s", "--safety-class-backoff-base=0s",
		"--safety-freeze-settle-time=0s", "--machine-safety-orphan-brake-share=0",
		"--rollout-gather=0s", "--rollout-names=0", "--progress-interval=0s", "--set-settle-within=0s", "--machine-quota-retry=0s", "--update-limit=0",
	}}.read(t.TempDir(), nil)
	require.NoError(t, err)
	for _, d := range []time.Duration{
		r.rules.machine.Grace, r.rules.machine.HookTimeout, r.rules.set.CrashLoopBase, r.rules.safety.ClassBackoffBase, r.rules.safety.SettleTime,
	} {
		require.EqualValues(t, object.Off, d)
	}
	require.EqualValues(t, object.Off, r.rules.safety.BrakeShare)
	deployment := r.rules.deployment
	require.Zero(t, deployment.Gather+deployment.ProgressInterval+r.rules.set.ProgressInterval+r.rules.set.SettleWithin+r.rules.machine.QuotaRetry)
	require.Zero(t, deployment.Names)
	require.Equal(t, "1", deployment.UpdateLimit.String(), "0 counts as one at a time")
}

// TestTags: a tag with an unknown field, or a field of another type, is an error.
func TestTags(t *testing.T) {
	for _, tag := range []string{"machine", "machine.None", "none.DrainTimeout", "machine.DrainTimeout.X", "", "machine.drainTimeout"} {
		_, err := defaultRules().fields(tag)
		require.Error(t, err, tag)
	}
	_, err := newReading(&Program{Settings: &struct {
		X int `policy:"machine.None"`
	}{}}, nil, io.Discard)
	require.ErrorContains(t, err, "machine.None")
	r, err := newReading(&Program{Settings: &struct {
		X int `default:"1" policy:"machine.DrainTimeout"`
	}{}}, nil, io.Discard)
	require.NoError(t, err)
	require.ErrorContains(t, r.read(), "setting x is no time.Duration")
}

// TestCheckDown: a server that is down is checked at least as often as a server that is up.
func TestCheckDown(t *testing.T) {
	r, err := sources{args: []string{"--machine-safety-apiserver-statuscheck-period=2s"}}.read(t.TempDir(), nil)
	require.NoError(t, err)
	require.Equal(t, 2*time.Second, r.rules.safety.CheckDown)
}

// TestSettingOf: the setting for a policy's field is found. A field without a setting keeps its name.
func TestSettingOf(t *testing.T) {
	r, err := newReading(&Program{}, nil, io.Discard)
	require.NoError(t, err)
	flags := r.parser.Model.Flags
	require.Equal(t, "machine-pv-detach-timeout", settingOf(flags, "drain", "policy.detachTimeout"))
	require.Equal(t, "machine-pv-detach-timeout", settingOf(flags, "machine", "policy.detachTimeout"))
	require.Equal(t, "safety policy.burst", settingOf(flags, "safety", "policy.burst"))
	require.Equal(t, "set-crash-loop-max", settingOf(flags, "set", "policy.crashLoopMax"))
	for _, policy := range []string{"machine", "set", "deployment", "safety", "drain", "pool"} {
		require.NotNil(t, r.rules.named(policy))
		require.Equal(t, reflect.Pointer, reflect.TypeOf(r.rules.named(policy)).Kind())
	}
}
