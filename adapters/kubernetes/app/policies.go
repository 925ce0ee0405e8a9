package app

import (
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machineset"
)

// policies are settings of the policies. The tag policy names the fields that one sets, of the
// package named first. Its default is theirs unless it has one of its own. 0 means off: see
// rules.apply. If a check of a policy fails, the error names the setting.
type policies struct {
	machinePolicy    `group:"Machines"`
	drainPolicy      `group:"Drain"`
	setPolicy        `group:"Sets"`
	deploymentPolicy `group:"Deployments"`
	safetyPolicy     `group:"Safety"`
	poolPolicy       `group:"Pools"`
}

type machinePolicy struct {
	MachineCreationTimeout time.Duration `policy:"machine.CreationTimeout,safety.NodeAge" help:"How long a machine may take to join before it is Failed. A node that no machine owns counts as unmanaged after as long."`
	MachineHealthTimeout   time.Duration `policy:"machine.HealthTimeout" help:"How long a machine may be unhealthy before it is Failed."`
	MachineInplaceTimeout  time.Duration `name:"machine-inplace-update-timeout" policy:"machine.InPlaceTimeout" help:"How long an update in place may take before it has failed."`
	ReplaceFailedUpdates   bool          `name:"replace-failed-inplace-updates" policy:"machine.ReplaceFailedUpdates" help:"Replace a machine whose update in place failed at once, within safety-replacements. Default: after machine-health-timeout."`
	MachineGrace           time.Duration `policy:"machine.Grace" help:"How long a manager watches, from its start and filled caches on, before it gives machines up for a timeout that began before; 0: it does not wait."`
	MachinePreserveTimeout time.Duration `policy:"machine.PreserveTimeout" help:"How long a machine is kept for inspection."`
	MachineHookTimeout     time.Duration `policy:"machine.HookTimeout" help:"How long hooks on a machine may hold its drain back, and how long the deletion of its VM; 0: without end."`
	MachineQuotaRetry      time.Duration `policy:"machine.QuotaRetry" help:"How long to wait after RESOURCE_EXHAUSTED; 0: 10m, the wait of the recovery table."`
	MachineWaitForChange   bool          `policy:"machine.WaitForChange" help:"Make no call again whose error code the driver contract says is not retried, until machine, class or secret change."`
	StartupTaints          []string      `placeholder:"KEY" policy:"machine.StartupTaints" help:"Keys of taints of node templates that are put on a node once, because another program removes them when it is ready."`
	NodeConditions         []string      `placeholder:"TYPE" policy:"machine.NodeConditions" help:"Conditions that make a node unhealthy unless they are False or absent. Default: ${default}."`
}

type drainPolicy struct {
	MachineDrainTimeout      time.Duration   `policy:"machine.DrainTimeout,drain.Timeout" help:"How long the drain of a machine that is deleted may take before force is used; the time of hooks does not count."`
	MachineMaxEvictRetries   int             `policy:"drain.MaxEvictRetries" help:"Slots of 20s that a pod has to be evicted in before it is deleted; 0: until the drain's end."`
	MachinePVDetachTimeout   time.Duration   `name:"machine-pv-detach-timeout" policy:"drain.DetachTimeout,machine.DetachTimeout" help:"How long volumes may take to be detached."`
	MachinePVReattachTimeout time.Duration   `name:"machine-pv-reattach-timeout" policy:"drain.ReattachTimeout" help:"How long volumes may take to be attached elsewhere."`
	DrainUnresponsive        time.Duration   `policy:"drain.Unresponsive,machine.Unresponsive" help:"How long a node is not Ready or read-only before it counts as not answering, and force is used."`
	DrainAtTimeout           drain.Treatment `policy:"drain.AtTimeout" help:"What happens at the drain's end to pods that were not to be evicted: Delete, Wait, Leave."`
	DrainSafeToEvict         []string        `placeholder:"ANNOTATION" policy:"drain.Keys.SafeToEvict" help:"Annotations that keep a pod from being evicted until the drain's end if they are false, such as cluster-autoscaler.kubernetes.io/safe-to-evict."`
	DrainOutOfService        bool            `policy:"drain.OutOfService" help:"Force puts the taint node.kubernetes.io/out-of-service on a node that does not answer. Only where such a node is known to be down."`
}

type setPolicy struct {
	SetBurst         int32               `policy:"set.Burst" help:"Machines that a set creates or deletes in one step. It is no brake: the next step follows at once. driver-concurrency and driver-qps limit calls."`
	SetAgeOrder      machineset.AgeOrder `placeholder:"ORDER" policy:"set.Age" help:"Which goes first of machines that nothing else tells apart: empty (the oldest), Newest, Random."`
	SetCrashLoopBase time.Duration       `policy:"set.CrashLoopBase" help:"Initial backoff for replacing machines that failed before they ran; doubles per failure, 0 disables."`
	SetCrashLoopMax  time.Duration       `policy:"set.CrashLoopMax" help:"The longest such wait."`
	SetExpireAtOnce  int32               `policy:"set.ExpireAtOnce" help:"Machines that a set replaces for their age at a time."`
	SetSettleWithin  time.Duration       `policy:"set.SettleWithin" help:"How long to wait for another write to carry a settled name reservation before writing it separately."`
	MaxReplicas      int32               `policy:"set.MaxReplicas,deployment.MaxReplicas" help:"The largest size of a deployment, or of a set without one. What asks for more is left as it is, with the condition SpecValid False; 0: no limit."`
	StrictQuota      bool                `policy:"set.StrictQuota,deployment.StrictQuota" help:"Machines that are being deleted count: there are never more at the provider than a rollout's ceiling."`
}

type deploymentPolicy struct {
	AutoscalerMark bool                 `name:"autoscaler-scaledown-annotation-during-rollout" negatable:"" default:"true" policy:"deployment.RolloutMarks.Keep" help:"While a rollout lasts, tell the cluster's autoscaler to leave its nodes alone."`
	AvoidMark      bool                 `name:"avoid-old-nodes-during-rollout" negatable:"" policy:"deployment.RolloutMarks.Avoid" help:"While a rollout lasts, have schedulers prefer other nodes than the old ones."`
	ProgressEvery  time.Duration        `policy:"deployment.ProgressInterval,set.ProgressInterval" help:"Least time between two statuses of a deployment, and of its sets, that tell of progress alone."`
	RolloutGather  time.Duration        `policy:"deployment.Gather" help:"How long the orders of a rolling update may wait for others to join them. The longer, the fewer writes it takes; 0: not at all."`
	RolloutNames   int32                `policy:"deployment.Names" help:"Names of machines that a set is given at most, in a rolling update, in the write that makes it larger; no more than set-burst. 0: it gives them out itself, which takes more writes."`
	IgnoreMinReady bool                 `name:"ignore-min-ready-seconds" policy:"deployment.IgnoreMinReady,set.IgnoreMinReady" help:"Take minReadySeconds as machine-controller-manager does: it stays on deployments and sets, and nothing waits for it. Default: a machine counts as available when it has been ready for that long."`
	UpdateLimit    rollout.IntOrPercent `placeholder:"N|N%" policy:"deployment.UpdateLimit" help:"VMs of a deployment that are updated without replacement at a time. Default: ${default}."`
}

type safetyPolicy struct {
	SafetyUp               int32                `policy:"safety.SafetyUp" help:"How many machines more than a set may ever have freeze it."`
	SafetyDown             int32                `policy:"safety.SafetyDown" help:"How far below that a frozen set thaws."`
	OrphanPeriod           time.Duration        `name:"machine-safety-orphan-vms-period" policy:"safety.OrphanPeriod" help:"How often the VMs of each class are listed, to delete those that no machine owns."`
	OrphanPrefix           string               `name:"machine-safety-orphan-prefix" policy:"safety.OrphanPrefix" help:"What names of machines of this fleet begin with: VMs with other names are never deleted. Default: the driver's word is enough."`
	OrphanBrake            int32                `name:"machine-safety-orphan-brake" policy:"safety.Brake" help:"VMs without an owner that may be deleted in an orphan period, for any share."`
	OrphanBrakeShare       int32                `name:"machine-safety-orphan-brake-share" policy:"safety.BrakeShare" help:"Share of the VMs, in percent, that may go where that is more; 100: no brake."`
	OrphansOfEmptyStore    bool                 `name:"machine-safety-orphans-of-empty-store" policy:"safety.OrphansOfEmptyStore" help:"Delete VMs without an owner also while there is no machine object at all."`
	APIServerCheckPeriod   time.Duration        `name:"machine-safety-apiserver-statuscheck-period" policy:"safety.CheckPeriod" help:"How often it is checked that the API servers answer."`
	APIServerCheckTimeout  time.Duration        `name:"machine-safety-apiserver-statuscheck-timeout" policy:"safety.DownTimeout" help:"How long an API server may be down before the fleet freezes."`
	SafetyReplacements     rollout.IntOrPercent `placeholder:"N|N%" policy:"safety.Replacements" help:"Machines of a deployment that may be in replacement for their health at a time. Default: ${default}, which is one."`
	SafetyZoneRule         bool                 `policy:"safety.ZoneRule" help:"Give up no machine in a zone of 3 or more of which most are Unknown."`
	SafetyPaceBase         time.Duration        `policy:"safety.PaceBase" help:"How long a class waits after a refusal that concerns all of it, such as RESOURCE_EXHAUSTED, doubled with each; 0: not at all."`
	SafetyPaceMax          time.Duration        `policy:"safety.PaceMax" help:"The longest such wait."`
	SafetyUnmanagedPeriod  time.Duration        `policy:"safety.NodePeriod" help:"How often nodes without a machine are looked for."`
	SafetyOwnerlessPeriod  time.Duration        `policy:"safety.OwnerPeriod" help:"How often machines and sets are looked for whose owner is gone."`
	SafetyFreezeSettleTime time.Duration        `policy:"safety.SettleTime" help:"How long a fleet stays frozen after its API servers answer again."`
}

type poolPolicy struct {
	PoolPeriod        time.Duration `policy:"pool.Period" help:"How often the provider is asked about the group of a pool."`
	PoolPoll          time.Duration `policy:"pool.Poll" help:"The same for a pool that is not as it should be yet."`
	PoolDrainTimeout  time.Duration `policy:"pool.DrainTimeout" help:"How long a machine of a pool is emptied that is to leave; then it goes as it is."`
	PoolQuotaRetry    time.Duration `policy:"pool.QuotaRetry" help:"How long a pool waits after RESOURCE_EXHAUSTED; 0: 10m, the wait of the recovery table."`
	PoolWaitForChange bool          `policy:"pool.WaitForChange" help:"Make no call about a pool again whose error code the driver contract says is not retried, until pool, class or secret change."`
	PoolAutoscaled    bool          `policy:"pool.Autoscaled" help:"The provider owns the size of every pool, not only of those annotated millwright-go/autoscaled: \"true\"."`
}
