package safety_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// TestPoliciesOutOfRange: the error of a value out of range names the field.
func TestPoliciesOutOfRange(t *testing.T) {
	require.NoError(t, safety.DefaultPolicy().Validate())
	for field, change := range map[string]func(*safety.Policy){
		"policy.orphanPeriod":      func(p *safety.Policy) { p.OrphanPeriod = time.Second - 1 },
		"policy.orphanGap":         func(p *safety.Policy) { p.OrphanGap = 1 },
		"policy.orphanSoon":        func(p *safety.Policy) { p.OrphanSoon = -2 },
		"policy.vmPeriod":          func(p *safety.Policy) { p.VMPeriod = time.Second - 1 },
		"policy.ownerPeriod":       func(p *safety.Policy) { p.OwnerPeriod = time.Second },
		"policy.ownerGap":          func(p *safety.Policy) { p.OwnerGap = 1 },
		"policy.checkPeriod":       func(p *safety.Policy) { p.CheckPeriod = 1 },
		"policy.checkDown":         func(p *safety.Policy) { p.CheckDown = time.Hour },
		"policy.downTimeout":       func(p *safety.Policy) { p.DownTimeout = 1 },
		"policy.settleTime":        func(p *safety.Policy) { p.SettleTime = -2 },
		"policy.grantUse":          func(p *safety.Policy) { p.GrantUse = 1 },
		"policy.grantFlight":       func(p *safety.Policy) { p.GrantFlight = 1 },
		"policy.nodeAge":           func(p *safety.Policy) { p.NodeAge = 1 },
		"policy.nodePeriod":        func(p *safety.Policy) { p.NodePeriod = 1 },
		"policy.brake":             func(p *safety.Policy) { p.Brake = -1 },
		"policy.brakeShare":        func(p *safety.Policy) { p.BrakeShare = 101 },
		"policy.classBackoffBase":  func(p *safety.Policy) { p.ClassBackoffBase = time.Second - 1 },
		"policy.classBackoffMax":   func(p *safety.Policy) { p.ClassBackoffMax = time.Second },
		"policy.classBackoffRetry": func(p *safety.Policy) { p.ClassBackoffRetry = 1 },
		"policy.safetyUp":          func(p *safety.Policy) { p.SafetyUp = -1 },
		"policy.safetyDown":        func(p *safety.Policy) { p.SafetyDown = -1 },
		"policy.replacements":      func(p *safety.Policy) { p.Replacements.Value = -1 },
		"policy.burst":             func(p *safety.Policy) { p.Burst = -1 },
		"policy.keys.slots":        func(p *safety.Policy) { p.Keys.Slots = "" },
	} {
		p := safety.DefaultPolicy()
		change(p)
		var bad *object.FieldError
		require.ErrorAs(t, p.Validate(), &bad, field)
		assert.Equal(t, field, bad.Field)
	}
	p := safety.DefaultPolicy()
	p.OrphanSoon, p.VMPeriod, p.BrakeShare, p.SettleTime, p.ClassBackoffBase = object.Off, object.Off, object.Off, object.Off, object.Off
	require.NoError(t, p.Validate())
	p.OrphanPeriod = 20 * time.Second // the value of machine-controller-manager's integration tests
	require.NoError(t, p.Validate())
	require.ErrorIs(t, (*safety.Policy)(nil).Validate(), safety.ErrNoPolicy)
}
