package gallery_test

// ofDriver are mistakes in package driver.
var ofDriver = []mutant{
	{
		name:   "an answer without a provider ID is accepted",
		breaks: "P13",
		file:   "driver/validate.go",
		from: `case blank(providerID):
		return "has no provider ID"
`,
		to: "",
		by: "TestBlankIDs|TestValidateNames",
	},
	{
		name:   "a nil answer of ListMachines counts as an empty list",
		breaks: "P15",
		file:   "driver/validation.go",
		from:   `case response == nil && v.Optional:`,
		to:     `case response == nil:`,
		by:     "TestValidateMissingResponses",
	},
	{
		name:   "a call that waits for its turn does not end with its context",
		breaks: "P21",
		file:   "driver/limit.go",
		from: `	if g.slots != nil {
		select {
		case g.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}`,
		to: `	if g.slots != nil {
		g.slots <- struct{}{}
	}`,
		by: "TestLimitOverTime|TestPropertyLimit",
	},
	{
		name:   "a call does not release its slot",
		breaks: "P21",
		file:   "driver/limit.go",
		from: `		defer g.leave()
`,
		to: "",
		by: "TestLimitSurvivesPanics",
	},
	{
		name:   "a call is made for a machine while an earlier one hangs",
		breaks: "P52",
		file:   "driver/calls.go",
		from:   "if before := c.busy[u.of]; before != nil {",
		to:     "if before := c.busy[u.of]; before != nil && len(c.overdue) == 0 {",
		by:     "TestOverdueCallsReturnToTheirCaller|TestP52OneCallAtATime",
	},
	{
		name:   "the late answer of a hanging create is lost",
		breaks: "P13",
		file:   "driver/calls.go",
		from:   "if err == nil && u.reuse {",
		to:     "if err == nil && u.reuse && u.ReadOnly {",
		by:     "TestLateCreate|TestP52OneCallAtATime",
	},
	{
		name:   "a late answer is used for another machine of the same name",
		breaks: "P13",
		file:   "driver/calls.go",
		from:   "if u.reuse && late.uid == u.uid {",
		to:     "if u.reuse {",
		by:     "TestLateCreate",
	},
	{
		name:   "hanging calls of one class use up the slots of all classes",
		breaks: "P52",
		file:   "driver/calls.go",
		from:   "of >= max(1, c.options.Most/shareOfClass)",
		to:     "of >= c.options.Most",
		by:     "TestOverdueCallsAreBounded",
	},
	{
		name:   "a burst has one call too many",
		breaks: "calls to the provider keep their rate",
		file:   "driver/limit.go",
		from:   "g.due = latest(g.due, now).Add(interval)",
		to:     "g.due = latest(g.due.Add(-interval), now).Add(interval)",
		by:     "TestLimitOverTime|TestLimitWithAClockSetBack",
	},
	{
		name:   "secrets are not removed from messages",
		breaks: "P42",
		file:   "driver/confidential.go",
		from: `		for key, value := range s.Data {
			c.hide(key, value)
		}`,
		to: `		for key, value := range s.Data {
			if len(key) > 100 {
				c.hide(key, value)
			}
		}`,
		by: "TestChangedMessagesAreReported|TestPartsOfSecretsAreTakenOut",
	},
	{
		name:   "a short secret is replaced before a longer one that contains it",
		breaks: "P42",
		file:   "driver/confidential.go",
		from:   "cmp.Compare(a.size, b.size), cmp.Compare(b.shown, a.shown)",
		to:     "cmp.Compare(b.size, a.size), cmp.Compare(b.shown, a.shown)",
		by:     "TestSecretsAreTakenOut|TestPartsOfSecretsAreTakenOut",
	},
	{
		name:   "a text in two encodings is decoded once",
		breaks: "P59",
		file:   "driver/reading.go",
		from:   "if depth == deepest {",
		to:     "if depth == 1 {",
		by:     "TestP59FormsOfSecrets",
	},
	{
		name:   "the timeout of one call is used for all calls",
		breaks: "each call has its own deadline",
		file:   "driver/deadline.go",
		from:   "cmp.Or(t.By[call], t.Default)",
		to:     "max(t.By[call], t.Default)",
		by:     "TestDeadline",
	},
	{
		name:   "a driver's panic ends the program",
		breaks: "P11",
		file:   "driver/recover.go",
		from:   "value := recover()",
		to:     "var value any",
		by:     "TestRecover|TestRecoverFromGoexit",
	},
	{
		name:   "an answer that is too long is passed on",
		breaks: "P42",
		file:   "driver/validation.go",
		from:   "if size := b.size(); size > b.Most {",
		to:     "if size := b.size(); size > 2*b.Most {",
		by:     "TestAnswersAreBounded",
	},
}
