package safety_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

func TestPoliciesOutOfRange(t *testing.T) {
	require.NoError(t, safety.DefaultPolicy().Validate())
	for field, change := range map[string]func(*safety.Policy){
		"policy.orphanPeriod": func(p *safety.Policy) { p.OrphanPeriod = time.Second },
		"policy.orphanGap":    func(p *safety.Policy) { p.OrphanGap = 0 },
		"policy.orphanSoon":   func(p *safety.Policy) { p.OrphanSoon = -1 },
		"policy.ownerPeriod":  func(p *safety.Policy) { p.OwnerPeriod = time.Second },
		"policy.ownerGap":     func(p *safety.Policy) { p.OwnerGap = 0 },
		"policy.checkPeriod":  func(p *safety.Policy) { p.CheckPeriod = 0 },
		"policy.checkDown":    func(p *safety.Policy) { p.CheckDown = time.Hour },
		"policy.downTimeout":  func(p *safety.Policy) { p.DownTimeout = 0 },
		"policy.settleTime":   func(p *safety.Policy) { p.SettleTime = -1 },
		"policy.grantUse":     func(p *safety.Policy) { p.GrantUse = 0 },
		"policy.grantFlight":  func(p *safety.Policy) { p.GrantFlight = 0 },
		"policy.nodeAge":      func(p *safety.Policy) { p.NodeAge = 0 },
		"policy.nodePeriod":   func(p *safety.Policy) { p.NodePeriod = 0 },
		"policy.brake":        func(p *safety.Policy) { p.Brake = 0 },
		"policy.brakeShare":   func(p *safety.Policy) { p.BrakeShare = 101 },
		"policy.paceBase":     func(p *safety.Policy) { p.PaceBase = time.Second - 1 },
		"policy.paceMax":      func(p *safety.Policy) { p.PaceMax = time.Second },
		"policy.paceTurn":     func(p *safety.Policy) { p.PaceTurn = 0 },
		"policy.safetyUp":     func(p *safety.Policy) { p.SafetyUp = 0 },
		"policy.safetyDown":   func(p *safety.Policy) { p.SafetyDown = 0 },
		"policy.replacements": func(p *safety.Policy) { p.Replacements.Value = -1 },
		"policy.burst":        func(p *safety.Policy) { p.Burst = 0 },
		"policy.keys.slots":   func(p *safety.Policy) { p.Keys.Slots = "" },
	} {
		p := safety.DefaultPolicy()
		change(p)
		var bad *object.FieldError
		require.ErrorAs(t, p.Validate(), &bad, field)
		assert.Equal(t, field, bad.Field)
	}
	require.ErrorIs(t, (*safety.Policy)(nil).Validate(), safety.ErrNoPolicy)
}
