package app

import (
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machineset"
)

// policies are the settings of the policies. The tag policy lists the fields that a setting sets, each
// by the name of its policy (see rules.named) and its own: field CreationTimeout of policy machine, for
// example. Without a tag default, the default is that of the first field. 0 means off: see rules.apply.
type policies struct {
	machinePolicy    `group:"Machines"`
	drainPolicy      `group:"Drain"`
	setPolicy        `group:"Sets"`
	deploymentPolicy `group:"Deployments"`
	safetyPolicy     `group:"Safety"`
	poolPolicy       `group:"Pools"`
}

type machinePolicy struct {
	MachineCreationTimeout time.Duration `policy:"machine.CreationTimeout,safety.NodeAge" help:"How long a machine may take to join the cluster before it is Failed. A node without a machine counts as unmanaged after the same time."`
	MachineHealthTimeout   time.Duration `policy:"machine.HealthTimeout" help:"How long a machine may be unhealthy before it is Failed."`
	MachineInplaceTimeout  time.Duration `name:"machine-inplace-update-timeout" policy:"machine.InPlaceTimeout" help:"How long an in-place update may take before it counts as failed."`
	ReplaceFailedUpdates   bool          `name:"replace-failed-inplace-updates" policy:"machine.ReplaceFailedUpdates" help:"Replace a machine whose in-place update failed immediately, within the limit of safety-replacements. Default: after machine-health-timeout."`
	MachineGrace           time.Duration `policy:"machine.Grace" help:"After a start, and once its caches are filled, the manager observes a machine for this long before it marks it Failed for a timeout that began before the start; 0: no grace period."`
	MachinePreserveTimeout time.Duration `policy:"machine.PreserveTimeout" help:"How long a preserved machine is kept for inspection."`
	MachineHookTimeout     time.Duration `policy:"machine.HookTimeout" help:"How long pre-drain hooks may delay the drain of a machine, and pre-terminate hooks the deletion of its VM; 0: no limit."`
	MachineQuotaRetry      time.Duration `policy:"machine.QuotaRetry" help:"Retry interval after RESOURCE_EXHAUSTED; 0: 10m, as in the recovery table."`
	MachineWaitForChange   bool          `policy:"machine.WaitForChange" help:"Do not repeat a call that failed with a code that the driver contract does not allow to retry, until the machine, class or secret has changed."`
	StartupTaints          []string      `placeholder:"KEY" policy:"machine.StartupTaints" help:"Keys of taints of the node template that are put on a node only once, because another program removes them when the node is ready."`
	NodeConditions         []string      `placeholder:"TYPE" policy:"machine.NodeConditions" help:"Node conditions that make a machine unhealthy if they are neither False nor absent. Default: ${default}."`
}

type drainPolicy struct {
	MachineDrainTimeout      time.Duration   `policy:"machine.DrainTimeout,drain.Timeout" help:"How long the drain of a machine may take before force is used. Time spent waiting for hooks does not count."`
	MachineMaxEvictRetries   int             `policy:"drain.MaxEvictRetries" help:"Eviction attempts (one every 20s) before a pod is deleted instead; 0: until the drain timeout."`
	MachinePVDetachTimeout   time.Duration   `name:"machine-pv-detach-timeout" policy:"drain.DetachTimeout,machine.DetachTimeout" help:"How long to wait for the volumes of a pod to be detached."`
	MachinePVReattachTimeout time.Duration   `name:"machine-pv-reattach-timeout" policy:"drain.ReattachTimeout" help:"How long to wait for the volumes of a pod to be attached to another node."`
	DrainUnresponsive        time.Duration   `policy:"drain.Unresponsive,machine.Unresponsive" help:"How long a node must be not Ready or read-only before it counts as unresponsive and force is used."`
	DrainAtTimeout           drain.Treatment `policy:"drain.AtTimeout" help:"What happens at the drain timeout to pods that must not be evicted: Delete, Wait or Leave."`
	DrainSafeToEvict         []string        `placeholder:"ANNOTATION" policy:"drain.Keys.SafeToEvict" help:"Annotations that, if false, protect a pod from eviction until the drain timeout, such as cluster-autoscaler.kubernetes.io/safe-to-evict."`
	DrainOutOfService        bool            `policy:"drain.OutOfService" help:"When force is used on an unresponsive node, add the taint node.kubernetes.io/out-of-service. Set it only if such a node is known to be down."`
}

type setPolicy struct {
	SetBurst         int32               `policy:"set.Burst" help:"Machines that a set creates or deletes per reconcile, or a twentieth of the set if that is more. It does not limit the rate, because the next reconcile follows immediately; driver-concurrency and driver-qps do."`
	SetAgeOrder      machineset.AgeOrder `placeholder:"ORDER" policy:"set.Age" help:"Which of otherwise equal machines is deleted first: empty (the oldest), Newest or Random."`
	SetCrashLoopBase time.Duration       `policy:"set.CrashLoopBase" help:"Initial backoff for replacing machines that failed before they ran; doubles per failure, 0 disables."`
	SetCrashLoopMax  time.Duration       `policy:"set.CrashLoopMax" help:"Maximum of that backoff."`
	SetExpireAtOnce  int32               `policy:"set.ExpireAtOnce" help:"Machines of a set that are replaced at the same time because they exceed the maximum age."`
	SetSettleWithin  time.Duration       `policy:"set.SettleWithin" help:"How long to wait for another write to carry a settled name reservation before writing it separately."`
	MaxReplicas      int32               `policy:"set.MaxReplicas,deployment.MaxReplicas" help:"Maximum replicas of a deployment, or of a set without a deployment. An object that asks for more is left unchanged and gets the condition SpecValid=False; 0: no limit."`
	StrictQuota      bool                `policy:"set.StrictQuota,deployment.StrictQuota" help:"Count terminating machines, so that the machines at the provider never exceed replicas plus maxSurge."`
}

type deploymentPolicy struct {
	AutoscalerMark   bool                 `name:"autoscaler-scaledown-annotation-during-rollout" negatable:"" default:"true" policy:"deployment.RolloutMarks.Keep" help:"During a rollout, annotate its nodes so that cluster-autoscaler does not scale them down."`
	AvoidMark        bool                 `name:"avoid-old-nodes-during-rollout" negatable:"" policy:"deployment.RolloutMarks.Avoid" help:"During a rollout, taint old nodes PreferNoSchedule, so that the scheduler prefers new ones."`
	ProgressInterval time.Duration        `policy:"deployment.ProgressInterval,set.ProgressInterval" help:"Minimum time between two status updates of a deployment or set that only report progress."`
	RolloutGather    time.Duration        `policy:"deployment.Gather" help:"How long a rolling update collects orders to its sets, to send them in fewer writes; 0: send each at once."`
	RolloutNames     int32                `policy:"deployment.Names" help:"Names of machines that a rolling update reserves for a set in the write that scales it up, at most; not more than set-burst. 0: the set reserves them itself, which takes more writes."`
	IgnoreMinReady   bool                 `name:"ignore-min-ready-seconds" policy:"deployment.IgnoreMinReady,set.IgnoreMinReady" help:"Ignore minReadySeconds, as machine-controller-manager does. Default: a machine is available after it was ready for minReadySeconds."`
	UpdateLimit      rollout.IntOrPercent `placeholder:"N|N%" policy:"deployment.UpdateLimit" help:"VMs of a deployment that are updated in their place (without a drain) at the same time. Default: ${default}."`
}

type safetyPolicy struct {
	SafetyUp               int32                `policy:"safety.SafetyUp" help:"A set is frozen when it has this many machines more than its maximum."`
	SafetyDown             int32                `policy:"safety.SafetyDown" help:"A frozen set is unfrozen when it has this many machines fewer than the number that freezes it."`
	OrphanPeriod           time.Duration        `name:"machine-safety-orphan-vms-period" policy:"safety.OrphanPeriod" help:"How often the VMs of each class are listed, to delete orphans: VMs without a machine."`
	OrphanPrefix           string               `name:"machine-safety-orphan-prefix" policy:"safety.OrphanPrefix" help:"Delete only orphans whose name begins with this prefix. Default: all orphans that the driver lists."`
	OrphanBrake            int32                `name:"machine-safety-orphan-brake" policy:"safety.Brake" help:"Orphans that may be deleted per machine-safety-orphan-vms-period, at any share."`
	OrphanBrakeShare       int32                `name:"machine-safety-orphan-brake-share" policy:"safety.BrakeShare" help:"Percentage of the VMs that may be deleted as orphans per period, if that is more; 100: no limit."`
	OrphansOfEmptyStore    bool                 `name:"machine-safety-orphans-of-empty-store" policy:"safety.OrphansOfEmptyStore" help:"Delete orphans even if there is no machine object at all."`
	APIServerCheckPeriod   time.Duration        `name:"machine-safety-apiserver-statuscheck-period" policy:"safety.CheckPeriod" help:"How often the API servers are checked."`
	APIServerCheckTimeout  time.Duration        `name:"machine-safety-apiserver-statuscheck-timeout" policy:"safety.DownTimeout" help:"How long an API server may be unreachable before the fleet is frozen."`
	SafetyReplacements     rollout.IntOrPercent `placeholder:"N|N%" policy:"safety.Replacements" help:"Unhealthy machines of a deployment that may be in replacement at the same time; 0 counts as 1. Default: ${default}."`
	SafetyZoneRule         bool                 `policy:"safety.ZoneRule" help:"Do not mark machines Failed in a zone of 3 or more machines of which most are Unknown."`
	SafetyClassBackoffBase time.Duration        `policy:"safety.ClassBackoffBase" help:"Initial backoff of a class after an error that concerns all its machines, such as RESOURCE_EXHAUSTED; doubles per error, 0 disables."`
	SafetyClassBackoffMax  time.Duration        `policy:"safety.ClassBackoffMax" help:"Maximum of that backoff."`
	SafetyUnmanagedPeriod  time.Duration        `policy:"safety.NodePeriod" help:"How often to look for nodes without a machine."`
	SafetyOwnerlessPeriod  time.Duration        `policy:"safety.OwnerPeriod" help:"How often to look for machines and sets whose owner no longer exists."`
	SafetyFreezeSettleTime time.Duration        `policy:"safety.SettleTime" help:"How long the fleet stays frozen after its API servers are reachable again."`
}

type poolPolicy struct {
	PoolPeriod        time.Duration `policy:"pool.Period" help:"How often the group of a pool is read from the provider."`
	PoolPoll          time.Duration `policy:"pool.Poll" help:"The same while a pool has not reached its desired state."`
	PoolDrainTimeout  time.Duration `policy:"pool.DrainTimeout" help:"How long the drain of a node of a pool may take before its instance is removed anyway."`
	PoolQuotaRetry    time.Duration `policy:"pool.QuotaRetry" help:"Retry interval of a pool after RESOURCE_EXHAUSTED; 0: 10m, as in the recovery table."`
	PoolWaitForChange bool          `policy:"pool.WaitForChange" help:"Do not repeat a call about a pool that failed with a code that the driver contract does not allow to retry, until the pool, class or secret has changed."`
	PoolAutoscaled    bool          `policy:"pool.Autoscaled" help:"The provider sets the size of all pools, not only of those annotated millwright-go/autoscaled: \"true\"."`
}
