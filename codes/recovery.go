package codes

// Recovery is what follows the answer of a driver call. The zero value does nothing.
type Recovery struct {
	// AutoRetry says that a retry soon may help by itself. False does not end the retries: unless
	// Class is None, the call is retried as Class says, and at once when machine, class or secret
	// change. Package machine decides the wait itself, in wait.go.
	AutoRetry bool
	// Class says how soon the call is retried.
	Class RetryClass
	// Remedy says what helps.
	Remedy Remedy
}

// RecoveryFor returns how call recovers from code. Every pair has an answer, found without
// allocating:
//   - a pair with a row in the table: that row. The rows are the provider contract's where it
//     speaks and this library's elsewhere; the column origin of testdata/recovery.csv tells which.
//   - Unimplemented without a row: {false, None, Continue}; the call is optional.
//   - any other pair without a row, and numbers that are no code: as that call's Unknown.
//
// A number that is no call answers as a call that has rows for OK (nothing to do) and Unknown
// (retry shortly) only.
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
		return Recovery{false, None, Continue}
	}
	return ofCall[Unknown]
}

// rows is the table of recoveries, row for row that of testdata/recovery.csv, and one entry more
// for numbers that are no call. Every call has a row for Unknown.
var rows = [callCount + 1]map[Code]Recovery{
	CreateMachine: {
		OK:                 {false, None, NoRemedy},
		Canceled:           {false, Medium, CleanUpAndReturn},
		Unknown:            {true, Short, RetryLater},
		InvalidArgument:    {false, Medium, FixArgument},
		DeadlineExceeded:   {true, Short, RetryLater},
		NotFound:           {false, Medium, FixArgument},
		AlreadyExists:      {false, Medium, UseAnotherName},
		PermissionDenied:   {false, Medium, GrantPermission},
		ResourceExhausted:  {false, Quota, RaiseQuota},
		PreconditionFailed: {false, Medium, ManualIntervention},
		Aborted:            {true, Short, WaitForPendingOperation},
		OutOfRange:         {false, Medium, FixArgument},
		Unimplemented:      {false, Medium, ImplementOrAlternate},
		Internal:           {false, Medium, ManualIntervention},
		Unavailable:        {true, Short, RetryLater},
		Unauthenticated:    {false, Medium, FixCredentials},
	},
	InitializeMachine: {
		OK:            {false, None, NoRemedy},
		Unknown:       {true, Short, RetryLater},
		NotFound:      {false, None, Continue},
		Unimplemented: {false, None, Continue},
		Internal:      {true, Short, ManualIntervention},
		Uninitialized: {true, Short, Reinitialize},
	},
	DeleteMachine: {
		OK:                 {false, None, NoRemedy},
		Canceled:           {false, Long, CleanUpAndReturn},
		Unknown:            {true, Short, RetryLater},
		InvalidArgument:    {false, Long, FixArgument},
		DeadlineExceeded:   {true, Short, RetryLater},
		NotFound:           {false, None, Continue},
		PermissionDenied:   {false, Long, GrantPermission},
		PreconditionFailed: {false, Long, ManualIntervention},
		Aborted:            {true, Short, WaitForPendingOperation},
		Unimplemented:      {false, Long, ImplementOrAlternate},
		Internal:           {false, Long, ManualIntervention},
		Unavailable:        {true, Short, RetryLater},
		Unauthenticated:    {false, Long, FixCredentials},
	},
	GetMachineStatus: {
		OK:                 {false, None, NoRemedy},
		Canceled:           {false, Medium, CleanUpAndReturn},
		Unknown:            {true, Short, RetryLater},
		InvalidArgument:    {false, Medium, FixArgument},
		DeadlineExceeded:   {true, Short, RetryLater},
		NotFound:           {false, None, Continue},
		PermissionDenied:   {false, Medium, GrantPermission},
		PreconditionFailed: {false, Medium, ManualIntervention},
		Aborted:            {true, Short, WaitForPendingOperation},
		OutOfRange:         {true, Short, CollectOrphans},
		Unimplemented:      {false, None, Continue},
		Internal:           {false, Medium, ManualIntervention},
		Unavailable:        {true, Short, RetryLater},
		Unauthenticated:    {false, Medium, FixCredentials},
		Uninitialized:      {false, None, Reinitialize},
	},
	ListMachines: {
		OK:               {false, None, NoRemedy},
		Canceled:         {false, Medium, CleanUpAndReturn},
		Unknown:          {true, Short, RetryLater},
		InvalidArgument:  {false, Medium, FixArgument},
		DeadlineExceeded: {true, Short, RetryLater},
		NotFound:         {false, Medium, FixArgument},
		PermissionDenied: {false, Medium, GrantPermission},
		Unimplemented:    {false, Medium, ImplementOrAlternate},
		Internal:         {false, Medium, ManualIntervention},
		Unavailable:      {true, Short, RetryLater},
		Unauthenticated:  {false, Medium, FixCredentials},
	},
	GetVolumeIDs: {
		OK:               {false, None, NoRemedy},
		Canceled:         {false, Medium, CleanUpAndReturn},
		Unknown:          {true, Short, RetryLater},
		InvalidArgument:  {false, Medium, FixArgument},
		DeadlineExceeded: {true, Short, RetryLater},
		Unimplemented:    {false, None, Continue},
		Internal:         {false, Medium, ManualIntervention},
		Unavailable:      {true, Short, RetryLater},
	},
	GenerateMachineClassForMigration: {
		OK:            {true, Requeue, RequeueMachine},
		Unknown:       {true, Short, RetryLater},
		Unimplemented: {false, None, NoRemedy},
		Internal:      {true, Short, ManualIntervention},
	},
	UpdateMachine: {
		OK:                 {false, None, NoRemedy},
		Canceled:           {false, Medium, CleanUpAndReturn},
		Unknown:            {true, Short, RetryLater},
		InvalidArgument:    {false, Medium, FixArgument},
		DeadlineExceeded:   {true, Short, RetryLater},
		NotFound:           {false, None, Continue},
		PermissionDenied:   {false, Medium, GrantPermission},
		ResourceExhausted:  {false, Quota, RaiseQuota},
		PreconditionFailed: {false, Medium, ManualIntervention},
		Aborted:            {true, Short, WaitForPendingOperation},
		OutOfRange:         {false, Medium, FixArgument},
		Unimplemented:      {false, None, ReplaceInstead},
		Internal:           {false, Medium, ManualIntervention},
		Unavailable:        {true, Short, RetryLater},
		Unauthenticated:    {false, Medium, FixCredentials},
		Uninitialized:      {true, Short, Reinitialize},
	},
	callCount: {
		OK:      {false, None, NoRemedy},
		Unknown: {true, Short, RetryLater},
	},
}
