package bootstrap_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/adapters/kubernetes/bootstrap"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// admitted returns the user as which the server accepts a token, or nil if it does not accept it.
func (w *world) admitted(token string) *authenticationv1.UserInfo {
	w.Helper()
	config := rest.AnonymousClientConfig(server.Config)
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	require.NoError(w, err)
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(w.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if apierrors.IsUnauthorized(err) {
		return nil
	}
	require.NoError(w, err)
	return &review.Status.UserInfo
}

// TestTokenAdmits: the server accepts the token, with the configured groups, until the token is
// deleted. It accepts no other secret half.
func TestTokenAdmits(t *testing.T) {
	w := newWorld(t)
	token := w.ensure(soon(20))
	require.Regexp(t, `^[a-z0-9]{6}\.[a-z0-9]{16}$`, token)
	eventually(t, "the token to be accepted", func() bool { return w.admitted(token) != nil })
	user := w.admitted(token)
	require.Equal(t, "system:bootstrap:"+bootstrap.ID(w.owner), user.Username)
	require.Contains(t, user.Groups, group)
	require.Contains(t, user.Groups, "system:bootstrappers")
	require.Nil(t, w.admitted(bootstrap.ID(w.owner)+".0000000000000000"))

	require.NoError(t, w.tokens.Delete(t.Context(), w.owner))
	require.Nil(t, w.secret())
	eventually(t, "the token to be refused", func() bool { return w.admitted(token) == nil })
	require.NoError(t, w.tokens.Delete(t.Context(), w.owner), "a token that is gone counts as deleted")
}

// TestTokenEnds: the server refuses an expired token, and accepts it again once it is prolonged.
func TestTokenEnds(t *testing.T) {
	w := newWorld(t)
	token := w.ensure(soon(-1))
	other := newWorld(t)
	valid := other.ensure(soon(20))
	eventually(t, "a token that was created later to be accepted", func() bool { return other.admitted(valid) != nil })
	require.Nil(t, w.admitted(token))
	require.Equal(t, token, w.ensure(soon(20)), "the token has changed")
	eventually(t, "the token to be valid again", func() bool { return w.admitted(token) != nil })
}

// TestTokenEndsByTheServersClock: if the manager's clock differs from the server's, a token is still
// valid for as long as the manager wants.
func TestTokenEndsByTheServersClock(t *testing.T) {
	for name, ahead := range map[string]time.Duration{
		"a quarter of an hour behind": -15 * time.Minute, "two hours ahead": 2 * time.Hour, "a little behind": -10 * time.Second,
	} {
		for _, pool := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				w.owner.Pool = pool
				now := func() time.Time { return time.Now().Add(ahead) }
				var err error
				w.tokens, err = bootstrap.New(bootstrap.Options{Config: server.Config, Groups: []string{group}, Now: now})
				require.NoError(t, err)
				token := w.ensure(now().Add(10 * time.Minute))
				end := func() time.Time {
					at, err := time.Parse(time.RFC3339, string(w.secret().Data["expiration"]))
					require.NoError(t, err)
					return at
				}
				require.WithinDuration(t, time.Now().Add(10*time.Minute), end(), time.Minute)
				eventually(t, "the token to be accepted", func() bool { return w.admitted(token) != nil })

				first := w.secret()
				require.Equal(t, token, w.ensure(now().Add(5*time.Minute)))
				require.Equal(t, first.ResourceVersion, w.secret().ResourceVersion, "the secret was written without need")
				renewed, err := w.tokens.Renew(t.Context(), w.owner, now().Add(20*time.Minute))
				require.NoError(t, err)
				require.Equal(t, token, string(renewed))
				require.WithinDuration(t, time.Now().Add(20*time.Minute), end(), time.Minute)
			})
		}
	}
}

// TestTokenIsFoundAgain: another process finds the same token, and writes it only to prolong it. It
// never shortens a token's time.
func TestTokenIsFoundAgain(t *testing.T) {
	w := newWorld(t)
	token := w.ensure(soon(20))
	first := w.secret()
	require.Equal(t, "true", string(first.Data["usage-bootstrap-signing"]))
	require.Contains(t, string(first.Data["description"]), w.owner.Key.String())
	again, err := bootstrap.New(bootstrap.Options{Config: server.Config, Groups: []string{group}})
	require.NoError(t, err)
	w.tokens = again
	for _, minutes := range []int{20, 5} {
		require.Equal(t, token, w.ensure(soon(minutes).Add(-10*time.Second)))
		require.Equal(t, first.ResourceVersion, w.secret().ResourceVersion, "the secret was written without need")
	}
	until := soon(40)
	require.Equal(t, token, w.ensure(until))
	end := string(w.secret().Data["expiration"])
	require.Equal(t, until.UTC().Format(time.RFC3339), end)
	renewed, err := w.tokens.Renew(t.Context(), w.owner, until.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, token, string(renewed))
	require.Equal(t, until.Add(time.Hour).UTC().Format(time.RFC3339), string(w.secret().Data["expiration"]))
	w.ensure(time.Date(12_000, 1, 1, 0, 0, 0, 0, time.UTC))
	require.Equal(t, "9999-12-31T00:00:00Z", string(w.secret().Data["expiration"]), "years have four digits")
}

// TestRenewCreatesNoToken: Renew returns no token, and writes nothing, if the token is missing, damaged or
// of another program.
func TestRenewCreatesNoToken(t *testing.T) {
	w := newWorld(t)
	none := func(what string) {
		t.Helper()
		before := w.secret()
		token, err := w.tokens.Renew(t.Context(), w.owner, soon(60))
		require.NoError(t, err, what)
		require.Empty(t, string(token), what)
		require.Equal(t, before, w.secret(), what)
	}
	none("absent")
	w.ensure(soon(20))
	w.change(func(s *corev1.Secret) { s.Data["token-secret"] = []byte("Damaged") })
	none("damaged")
	require.NoError(t, w.tokens.Delete(t.Context(), w.owner))
	w.foreign()
	none("of another program")
}

// foreign stores another program's token under the machine's ID.
func (w *world) foreign() {
	w.Helper()
	_, err := w.client.CoreV1().Secrets("kube-system").Create(w.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: w.name()}, Type: corev1.SecretTypeBootstrapToken,
		Data: map[string][]byte{"token-id": []byte(bootstrap.ID(w.owner)), "token-secret": []byte("0123456789abcdef")},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
}

// TestTokensOfOthersAreLeftAlone: a secret with the name of the machine's token that is not the
// machine's is neither returned nor changed nor deleted.
func TestTokensOfOthersAreLeftAlone(t *testing.T) {
	for _, what := range []string{"without owner", "of another machine", "of another type"} {
		w := newWorld(t)
		if what == "of another type" {
			_, err := w.client.CoreV1().Secrets("kube-system").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
				Name: w.name(), Annotations: map[string]string{bootstrap.AnnotationOwner: w.owner.UID},
			}}, metav1.CreateOptions{})
			require.NoError(t, err)
		} else {
			w.foreign()
		}
		if what == "of another machine" {
			w.change(func(s *corev1.Secret) { s.Annotations = map[string]string{bootstrap.AnnotationOwner: "uid-other"} })
		}
		before := w.secret()
		_, err := w.tokens.Ensure(t.Context(), w.owner, soon(20))
		require.ErrorIs(t, err, bootstrap.ErrTaken, what)
		require.Equal(t, codes.AlreadyExists, codes.Of(err))
		require.NoError(t, w.tokens.Delete(t.Context(), w.owner))
		require.Equal(t, before, w.secret(), what)
	}
}

// TestDamagedTokensAreMended: Ensure repairs a damaged token. If ID or secret half are damaged, the
// token is replaced by another one.
func TestDamagedTokensAreMended(t *testing.T) {
	for _, damage := range []string{
		"expiration=", "usage-bootstrap-authentication=no", "usage-bootstrap-signing=no",
		"auth-extra-groups=system:bootstrappers:other", "token-id=zzzzzz", "token-secret=UPPER456789abcde", "token-secret=short",
	} {
		key, value, _ := strings.Cut(damage, "=")
		w := newWorld(t)
		until := soon(20)
		token := w.ensure(until)
		want := w.secret()
		w.change(func(s *corev1.Secret) { s.Data[key] = []byte(value) })
		mended := w.ensure(until)
		require.Regexp(t, `^`+bootstrap.ID(w.owner)+`\.[a-z0-9]{16}$`, mended)
		lost := key == "token-id" || key == "token-secret"
		require.Equal(t, lost, token != mended, key)
		if !lost && key != "expiration" {
			require.Equal(t, want.Data, w.secret().Data, key)
		}
		eventually(t, "the token to be accepted: "+key, func() bool { return w.admitted(mended) != nil })
	}
}

// TestTokenThatIsBeingDeleted: while a finalizer delays the deletion of a token's secret, Renew
// returns no token, and Ensure an error, so that it is tried again.
func TestTokenThatIsBeingDeleted(t *testing.T) {
	w := newWorld(t)
	w.ensure(soon(20))
	w.change(func(s *corev1.Secret) { s.Finalizers = []string{"example.org/hold"} })
	require.NoError(t, w.tokens.Delete(t.Context(), w.owner))
	_, err := w.tokens.Ensure(t.Context(), w.owner, soon(20))
	require.Equal(t, codes.Aborted, codes.Of(err))
	token, err := w.tokens.Renew(t.Context(), w.owner, soon(20))
	require.NoError(t, err)
	require.Empty(t, string(token))
	w.change(func(s *corev1.Secret) { s.Finalizers = nil })
	w.ensure(soon(20))
}

// TestOneTokenForAMachine: if many callers ensure a machine's token at the same time, all get the
// same one, with the longest of the times.
func TestOneTokenForAMachine(t *testing.T) {
	w := newWorld(t)
	const callers = 4 // fewer than the tries of a call, since at least one succeeds in each round
	got := make([]manager.Token, callers)
	errs := make([]error, callers)
	longest := soon(30 + callers - 1)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			got[i], errs[i] = w.tokens.Ensure(t.Context(), w.owner, longest.Add(-time.Duration(i)*time.Minute))
		})
	}
	all.Wait()
	for i := range callers {
		require.NoError(t, errs[i])
		require.Equal(t, string(got[0]), string(got[i]))
	}
	require.Equal(t, longest.UTC().Format(time.RFC3339), string(w.secret().Data["expiration"]))
}

// TestErrorsOfTheServer: each error has the code that decides its retry, and the secret's name.
func TestErrorsOfTheServer(t *testing.T) {
	w := newWorld(t)
	nobody, err := server.As("nobody")
	require.NoError(t, err)
	stranger := rest.AnonymousClientConfig(server.Config)
	stranger.BearerToken = "abcdef.0123456789abcdef"
	silent := rest.CopyConfig(server.Config)
	silent.Host = "https://127.0.0.1:1"
	for want, config := range map[codes.Code]*rest.Config{
		codes.PermissionDenied: nobody, codes.Unauthenticated: stranger, codes.Unavailable: silent,
	} {
		tokens, err := bootstrap.New(bootstrap.Options{Config: config})
		require.NoError(t, err)
		_, ensured := tokens.Ensure(t.Context(), w.owner, soon(20))
		_, renewed := tokens.Renew(t.Context(), w.owner, soon(20))
		for _, err := range []error{ensured, renewed, tokens.Delete(t.Context(), w.owner)} {
			require.Equal(t, want, codes.Of(err), "%v", err)
			require.Contains(t, codes.Message(err), "secret kube-system/"+w.name()+": get: ")
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = w.tokens.Ensure(ended, w.owner, soon(20))
	require.Equal(t, codes.Canceled, codes.Of(err))
	late, end := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer end()
	_, err = w.tokens.Ensure(late, w.owner, soon(20))
	require.Equal(t, codes.DeadlineExceeded, codes.Of(err))
}

// TestAnswersOfTheServer: errors that the API server of these tests does not return. Texts that repeat
// the secret half are redacted.
func TestAnswersOfTheServer(t *testing.T) {
	for _, c := range []struct {
		status int
		reason metav1.StatusReason
		want   codes.Code
	}{
		{http.StatusInternalServerError, metav1.StatusReasonInternalError, codes.Unavailable},
		{http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, codes.Unavailable},
		{http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, codes.Unavailable},
		{http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, codes.InvalidArgument},
		{http.StatusConflict, metav1.StatusReasonConflict, codes.Aborted},
		{http.StatusTeapot, "Teapot", codes.Unknown},
		{http.StatusNotFound, metav1.StatusReasonNotFound, codes.PreconditionFailed},
	} {
		calls := 0
		fake := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
			var body bytes.Buffer
			_, _ = body.ReadFrom(in.Body)
			calls++
			out.Header().Set("Content-Type", "application/json")
			reason, status, text := c.reason, c.status, "no"
			if in.Method == http.MethodGet {
				reason, status = metav1.StatusReasonNotFound, http.StatusNotFound
			} else {
				text = "no " + strings.Repeat("0", 16) // the secret half is repeated
			}
			out.WriteHeader(status)
			_, _ = out.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":` +
				itoa(status) + `,"reason":"` + string(reason) + `","message":"` + text + `"}`))
		}))
		tokens, err := bootstrap.New(bootstrap.Options{Config: &rest.Config{Host: fake.URL}, Random: zeros{}})
		require.NoError(t, err)
		_, err = tokens.Ensure(t.Context(), manager.TokenOwner{UID: "u"}, soon(20))
		require.Equal(t, c.want, codes.Of(err), "%d: %v", c.status, err)
		require.NotContains(t, err.Error(), "0000", "the error shows the secret half")
		require.Contains(t, err.Error(), "(secret)")
		if c.want == codes.Aborted {
			require.Equal(t, 10, calls, "five tries of two requests each")
		}
		fake.Close()
	}
}

// TestTokenOfAPool: a pool's token expires and may be removed like any other, but the same token is
// created again when machines are to join, because the group's user data has it. It is deleted with
// the pool.
func TestTokenOfAPool(t *testing.T) {
	w := newWorld(t)
	w.owner.Pool = true
	renewed, err := w.tokens.Renew(t.Context(), w.owner, soon(20))
	require.NoError(t, err)
	require.Empty(t, string(renewed), "Renew has created a token")
	token := w.ensure(soon(20))
	require.Equal(t, "For pool "+w.owner.Key.String()+", renewed while machines of it may join.", string(w.secret().Data["description"]))
	clean := func() { // as the token cleaner does
		require.NoError(t, w.client.CoreV1().Secrets("kube-system").Delete(t.Context(), w.name(), metav1.DeleteOptions{}))
		eventually(t, "the token to be refused", func() bool { return w.admitted(token) == nil })
	}
	clean()
	asked, err := w.tokens.Renew(t.Context(), w.owner, time.Time{})
	require.NoError(t, err)
	require.Equal(t, token, string(asked))
	require.Nil(t, w.secret(), "Renew without a time has created the secret")
	require.Equal(t, token, w.ensure(soon(20)), "Ensure has created another token")
	eventually(t, "the token to be valid again", func() bool { return w.admitted(token) != nil })
	clean()
	renewed, err = w.tokens.Renew(t.Context(), w.owner, soon(20))
	require.NoError(t, err)
	require.Equal(t, token, string(renewed), "Renew has created another token")
	w.change(func(s *corev1.Secret) { s.Data["token-secret"] = []byte("0000000000000000") })
	require.Equal(t, token, w.ensure(soon(20)), "the kept half was not restored")

	kept := "millwright-pool-token-" + bootstrap.ID(w.owner)
	secrets := w.client.CoreV1().Secrets("kube-system")
	require.NoError(t, w.tokens.Delete(t.Context(), w.owner))
	require.Nil(t, w.secret())
	_, err = secrets.Get(t.Context(), kept, metav1.GetOptions{})
	require.True(t, apierrors.IsNotFound(err), "%v", err)
	require.NoError(t, w.tokens.Delete(t.Context(), w.owner), "a token that is gone counts as deleted")
	require.NotEqual(t, token, w.ensure(soon(20)), "the next token has the old half")
}

// TestKeptHalfIsNotReplaced: the secret with a pool's secret half is not replaced if it is damaged or
// of another owner.
func TestKeptHalfIsNotReplaced(t *testing.T) {
	w := newWorld(t)
	w.owner.Pool = true
	w.ensure(soon(20))
	secrets := w.client.CoreV1().Secrets("kube-system")
	damage := func(how func(*corev1.Secret)) {
		kept, err := secrets.Get(t.Context(), "millwright-pool-token-"+bootstrap.ID(w.owner), metav1.GetOptions{})
		require.NoError(t, err)
		how(kept)
		_, err = secrets.Update(t.Context(), kept, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	damage(func(s *corev1.Secret) { s.Data["token-secret"] = []byte("?") })
	_, err := w.tokens.Ensure(t.Context(), w.owner, soon(20))
	require.Equal(t, codes.PreconditionFailed, codes.Of(err), "%v", err)
	require.ErrorContains(t, err, "the secret that keeps the pool's token is damaged")
	damage(func(s *corev1.Secret) { s.Annotations = nil })
	_, err = w.tokens.Ensure(t.Context(), w.owner, soon(20))
	require.ErrorIs(t, err, bootstrap.ErrTaken)
	require.NoError(t, w.tokens.Delete(t.Context(), w.owner))
	_, err = secrets.Get(t.Context(), "millwright-pool-token-"+bootstrap.ID(w.owner), metav1.GetOptions{})
	require.NoError(t, err, "the secret of another owner was deleted")
}

// TestIDs: the ID follows from the UID, or from the key if there is no UID, and differs between owners.
func TestIDs(t *testing.T) {
	a := manager.TokenOwner{Key: object.Key{Namespace: "fleet", Name: "a"}, UID: "1"}
	b := manager.TokenOwner{Key: object.Key{Namespace: "fleet", Name: "b"}, UID: "1"}
	require.Equal(t, bootstrap.ID(a), bootstrap.ID(b), "the UID decides")
	a.UID, b.UID = "", ""
	require.NotEqual(t, bootstrap.ID(a), bootstrap.ID(b))
	pool := a
	pool.Pool = true
	require.NotEqual(t, bootstrap.ID(a), bootstrap.ID(pool), "a pool and a machine with the same name have the same ID")
	seen := map[string]bool{}
	for i := range 2000 {
		id := bootstrap.ID(manager.TokenOwner{UID: itoa(i)})
		require.Regexp(t, `^[a-z0-9]{6}$`, id)
		seen[id] = true
	}
	require.Greater(t, len(seen), 1998)
}

// TestSecretHalvesAreRandom: bytes that would make some characters more likely are skipped. The error
// of a random source is returned.
func TestSecretHalvesAreRandom(t *testing.T) {
	w := newWorld(t)
	source := append([]byte{255, 252, 251, 0, 35, 36}, bytes.Repeat([]byte{10}, 16)...)
	tokens, err := bootstrap.New(bootstrap.Options{Config: server.Config, Random: bytes.NewReader(source)})
	require.NoError(t, err)
	token, err := tokens.Ensure(t.Context(), w.owner, soon(20))
	require.NoError(t, err)
	require.Equal(t, bootstrap.ID(w.owner)+".z0z0aaaaaaaaaaaa", string(token))
	require.NotContains(t, w.secret().Data, "auth-extra-groups")
	_, err = tokens.Ensure(t.Context(), newWorld(t).owner, soon(20))
	require.ErrorContains(t, err, "EOF")

	require.NotEqual(t, newWorld(t).ensure(soon(20))[7:], newWorld(t).ensure(soon(20))[7:])
}

// TestOptionsAreChecked: groups that no server would accept are refused.
func TestOptionsAreChecked(t *testing.T) {
	_, err := bootstrap.New(bootstrap.Options{})
	require.ErrorContains(t, err, "no Config")
	for _, bad := range []string{"system:masters", "", "system:bootstrappers:", "system:bootstrappers:a,system:masters"} {
		_, err := bootstrap.New(bootstrap.Options{Config: server.Config, Groups: []string{bad}})
		require.ErrorContains(t, err, "no server would accept it", bad)
	}
}
