package codes

import "time"

// Recovery is what follows the answer of a driver call. The zero value does nothing.
type Recovery struct {
	// AutoRetry says that a retry soon may help by itself. False does not end the retries: unless
	// Class is None, the call is retried as Class says, and at once when machine, class or secret
	// change. Package machine decides the wait itself, in wait.go.
	AutoRetry bool
	// Class says how soon the call is retried, after the quick retries.
	Class RetryClass
	// Quick is how many of the first retries in a row wait only as long as those of class Short.
	Quick uint8
	// Remedy says what helps.
	Remedy Remedy
}

// quick is how many quick retries follow an INTERNAL of a call that creates, reads, updates or deletes a
// VM. Such a failure often passes by itself, while most other codes name something that must be changed
// first.
const quick = 2

// Backoff returns how long to wait after so many failures in a row: [RetryClass.Backoff] of Short
// while there are quick retries, and of Class from then on. For zero failures it is Class's period:
// a process that has just started does not know the count, and if it crashes again and again, it must
// not make the call at once each time. quota is as for [RetryClass.Period]. The caller adds jitter.
func (r Recovery) Backoff(failures int, quota time.Duration) time.Duration {
	quick := int(r.Quick)
	if 0 < failures && failures <= quick {
		return Short.Backoff(failures, quota)
	}
	return r.Class.Backoff(max(failures, quick)-quick, quota)
}

// RecoveryFor returns how call recovers from code. Every pair has an answer, found without
// allocating:
//   - a pair with a row in the table: that row. It is the provider contract's or, if the contract
//     has none, this library's; see the column origin of testdata/recovery.csv.
//   - Unimplemented without a row: {false, None, 0, Continue}; the call is optional.
//   - any other pair without a row, and numbers that are no code: as that call's Unknown.
//
// A number that is no call counts as a call with rows for OK (nothing to do) and Unknown (retry
// soon) only.
func RecoveryFor(call Call, code Code) Recovery {
	if !code.Valid() {
		code = Unknown
	}
	return recoveries[min(int(call), callCount)][code]
}

// recoveries is the table with every gap filled. The last entry is for numbers that are no call. It
// is read-only once the package is initialized.
var recoveries = filled()

func filled() (all [callCount + 1][codeCount]Recovery) {
	for call := range all {
		for code := range All() {
			all[call][code] = rowOrDefault(rows[call], code)
		}
	}
	return all
}

func rowOrDefault(ofCall map[Code]Recovery, code Code) Recovery {
	if r, ok := ofCall[code]; ok {
		return r
	}
	if code == Unimplemented {
		return Recovery{false, None, 0, Continue}
	}
	return ofCall[Unknown]
}

// rows is the table of recoveries: the rows of testdata/recovery.csv, and an entry for numbers that
// are no call. Every call has a row for Unknown.
var rows = [callCount + 1]map[Code]Recovery{
	CreateMachine: {
		OK:                 {false, None, 0, NoRemedy},
		Canceled:           {false, Medium, 0, CleanUpAndReturn},
		Unknown:            {true, Short, 0, RetryLater},
		InvalidArgument:    {false, Medium, 0, FixArgument},
		DeadlineExceeded:   {true, Short, 0, RetryLater},
		NotFound:           {false, Medium, 0, FixArgument},
		AlreadyExists:      {false, Medium, 0, UseAnotherName},
		PermissionDenied:   {false, Medium, 0, GrantPermission},
		ResourceExhausted:  {false, Quota, 0, RaiseQuota},
		PreconditionFailed: {false, Medium, 0, ManualIntervention},
		Aborted:            {true, Short, 0, WaitForPendingOperation},
		OutOfRange:         {false, Medium, 0, FixArgument},
		Unimplemented:      {false, Medium, 0, ImplementOrAlternate},
		Internal:           {false, Medium, quick, ManualIntervention},
		Unavailable:        {true, Short, 0, RetryLater},
		Unauthenticated:    {false, Medium, 0, FixCredentials},
	},
	InitializeMachine: {
		OK:            {false, None, 0, NoRemedy},
		Unknown:       {true, Short, 0, RetryLater},
		NotFound:      {false, None, 0, Continue},
		Unimplemented: {false, None, 0, Continue},
		Internal:      {true, Short, 0, ManualIntervention},
		Uninitialized: {true, Short, 0, Reinitialize},
	},
	DeleteMachine: {
		OK:                 {false, None, 0, NoRemedy},
		Canceled:           {false, Long, 0, CleanUpAndReturn},
		Unknown:            {true, Short, 0, RetryLater},
		InvalidArgument:    {false, Long, 0, FixArgument},
		DeadlineExceeded:   {true, Short, 0, RetryLater},
		NotFound:           {false, None, 0, Continue},
		PermissionDenied:   {false, Long, 0, GrantPermission},
		PreconditionFailed: {false, Long, 0, ManualIntervention},
		Aborted:            {true, Short, 0, WaitForPendingOperation},
		Unimplemented:      {false, Long, 0, ImplementOrAlternate},
		Internal:           {false, Long, quick, ManualIntervention},
		Unavailable:        {true, Short, 0, RetryLater},
		Unauthenticated:    {false, Long, 0, FixCredentials},
	},
	GetMachineStatus: {
		OK:                 {false, None, 0, NoRemedy},
		Canceled:           {false, Medium, 0, CleanUpAndReturn},
		Unknown:            {true, Short, 0, RetryLater},
		InvalidArgument:    {false, Medium, 0, FixArgument},
		DeadlineExceeded:   {true, Short, 0, RetryLater},
		NotFound:           {false, None, 0, Continue},
		PermissionDenied:   {false, Medium, 0, GrantPermission},
		PreconditionFailed: {false, Medium, 0, ManualIntervention},
		Aborted:            {true, Short, 0, WaitForPendingOperation},
		OutOfRange:         {true, Short, 0, CollectOrphans},
		Unimplemented:      {false, None, 0, Continue},
		Internal:           {false, Medium, quick, ManualIntervention},
		Unavailable:        {true, Short, 0, RetryLater},
		Unauthenticated:    {false, Medium, 0, FixCredentials},
		Uninitialized:      {false, None, 0, Reinitialize},
	},
	ListMachines: {
		OK:               {false, None, 0, NoRemedy},
		Canceled:         {false, Medium, 0, CleanUpAndReturn},
		Unknown:          {true, Short, 0, RetryLater},
		InvalidArgument:  {false, Medium, 0, FixArgument},
		DeadlineExceeded: {true, Short, 0, RetryLater},
		NotFound:         {false, Medium, 0, FixArgument},
		PermissionDenied: {false, Medium, 0, GrantPermission},
		Unimplemented:    {false, Medium, 0, ImplementOrAlternate},
		Internal:         {false, Medium, 0, ManualIntervention},
		Unavailable:      {true, Short, 0, RetryLater},
		Unauthenticated:  {false, Medium, 0, FixCredentials},
	},
	GetVolumeIDs: {
		OK:               {false, None, 0, NoRemedy},
		Canceled:         {false, Medium, 0, CleanUpAndReturn},
		Unknown:          {true, Short, 0, RetryLater},
		InvalidArgument:  {false, Medium, 0, FixArgument},
		DeadlineExceeded: {true, Short, 0, RetryLater},
		Unimplemented:    {false, None, 0, Continue},
		Internal:         {false, Medium, 0, ManualIntervention},
		Unavailable:      {true, Short, 0, RetryLater},
	},
	GenerateMachineClassForMigration: {
		OK:            {true, Requeue, 0, RequeueMachine},
		Unknown:       {true, Short, 0, RetryLater},
		Unimplemented: {false, None, 0, NoRemedy},
		Internal:      {true, Short, 0, ManualIntervention},
	},
	UpdateMachine: {
		OK:                 {false, None, 0, NoRemedy},
		Canceled:           {false, Medium, 0, CleanUpAndReturn},
		Unknown:            {true, Short, 0, RetryLater},
		InvalidArgument:    {false, Medium, 0, FixArgument},
		DeadlineExceeded:   {true, Short, 0, RetryLater},
		NotFound:           {false, None, 0, Continue},
		PermissionDenied:   {false, Medium, 0, GrantPermission},
		ResourceExhausted:  {false, Quota, 0, RaiseQuota},
		PreconditionFailed: {false, Medium, 0, ManualIntervention},
		Aborted:            {true, Short, 0, WaitForPendingOperation},
		OutOfRange:         {false, Medium, 0, FixArgument},
		Unimplemented:      {false, None, 0, ReplaceInstead},
		Internal:           {false, Medium, quick, ManualIntervention},
		Unavailable:        {true, Short, 0, RetryLater},
		Unauthenticated:    {false, Medium, 0, FixCredentials},
		Uninitialized:      {true, Short, 0, Reinitialize},
	},
	callCount: {
		OK:      {false, None, 0, NoRemedy},
		Unknown: {true, Short, 0, RetryLater},
	},
}
