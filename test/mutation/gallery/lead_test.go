package gallery_test

var ofLead = []mutant{
	{
		name:   "a term lasts for the whole TTL without renewal",
		breaks: "P68",
		file:   "lead/lead.go",
		from:   "limit: e.share(limitOf)",
		to:     "limit: e.TTL",
		by:     "TestP68OneLeader|TestRenewalsFail",
	},
	{
		name:   "a term counts from the answer to a renewal",
		breaks: "P68",
		file:   "lead/lead.go",
		from:   "term.renewed(sent)",
		to:     "_ = sent; term.renewed(e.Now())",
		by:     "TestAnswersAreSlow",
	},
	{
		name:   "a suspended process whose monotonic clock stood still goes on",
		breaks: "P68",
		file:   "lead/lead.go",
		from:   "max(now.Sub(h.sent), now.Round(0).Sub(h.sent.Round(0)))",
		to:     "now.Sub(h.sent)",
		by:     "TestSuspended",
	},
	{
		name:   "a lease in memory is renewed for a process that has lost it",
		breaks: "P68",
		file:   "lead/leadtest/memory.go",
		from:   "return t == m.last && m.left() > 0",
		to:     "return t <= m.last && m.left() > 0",
		by:     "TestMemory",
	},
}
