package gallery_test

// pooled are mistakes in what is done about pools. All storms that look for them
// have pools.
var pooled = []mutant{
	{
		"a group is made with one instance more than is wanted", "P30", "machinepool/act.go",
		"n := d.wanted()\n\twhy", "n := d.wanted() + 1\n\twhy",
	},
	{
		"a size is ordered that is the provider's", "P31", "machinepool/decide.go",
		"if d.autoscaled() && d.found() {", "if d.p.Autoscaled && d.found() {",
	},
	{
		"instances that are too many go as they are", "P34", "machinepool/leave.go",
		"if d.o.NoDrain || nodeless || drained ||", "if d.o.NoDrain || nodeless || drained || exit == ExitScaleDown ||",
	},
	{
		"a group that is going counts as gone", "P35", "machinepool/remove.go",
		"(answer.Code == codes.OK || answer.Code == codes.NotFound) {",
		"(answer.Code == codes.OK || answer.Code == codes.NotFound || answer.Code == codes.Aborted) {",
	},
	{
		"the group of a pool that is gone is deleted, whosever it is by now", "P35", "machinepool/remove.go",
		"if !d.o.Fenced {", "if !d.o.Fenced && d.o.Class == nil {",
	},
	{
		"nodes of pools have no owner", "P39", "safety/nodes.go",
		"pooled := n.ProviderID != \"\" && d.o.Instances[n.ProviderID]", "pooled := n.ProviderID == \"\" && d.o.Instances[n.ProviderID]",
	},
	{
		"nobody renews the token for instances that come later", "P36", "machinepool/act.go",
		"return d.o.Nodes != nil && d.joined < d.wanted() && d.wanted() >= d.o.Group.Target",
		"return d.o.Nodes != nil && d.joined < d.wanted() && d.s.Status.Phase == PhaseProvisioning",
	},
	{
		"an update of a group that was killed counts as never sent", "P36", "machinepool/retry.go",
		"s.Applied = s.Applied.doubted()", "s.Applied = s.Applied.Clone()",
	},
}
