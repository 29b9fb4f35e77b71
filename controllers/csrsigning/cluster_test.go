// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrsigning

import (
	"context"
	"crypto"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/certrequesttest"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// process is a controller at work, with the rights that it declares and no others.
type process struct {
	*manager.Manager
	stop func() // ends it

	mu     sync.Mutex
	log    strings.Builder
	dead   atomic.Bool  // its connection is cut: no answer reaches it
	stored atomic.Int64 // writes that the server has carried out
	paths  []string     // of these
}

// Write takes a line of the log.
func (p *process) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(line)
}

func (p *process) logged(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.log.String(), text)
}

var errCut = errors.New("the connection is cut")

func (p *process) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if p.dead.Load() {
			return nil, errCut
		}
		response, err := next.RoundTrip(r)
		if err == nil && r.Method == http.MethodPut && response.StatusCode == http.StatusOK {
			p.stored.Add(1)
			p.mu.Lock()
			p.paths = append(p.paths, r.URL.Path)
			p.mu.Unlock()
		}
		if err == nil && p.dead.Load() { // while the server was at it
			return nil, errors.Join(errCut, response.Body.Close())
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// start runs the controller, with the cluster's own authority for all signers unless
// given others.
func start(t *testing.T, authorities map[string]Source) *process {
	t.Helper()
	cluster := shared.Get(t)
	if authorities == nil {
		authorities = ForAll(Files(cluster.Endpoints().CAFile, cluster.Endpoints().CAKeyFile))
	}
	p := &process{}
	config := cluster.Restricted(t, Rights())
	config.Wrap(p.wrap)
	mgr, err := manager.New(config, manager.Log(slog.New(slog.NewTextHandler(p, nil))))
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(mgr, Options{Workers: 5, Longest: LongestLifetime, Authorities: authorities})
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(c); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Run(ctx) }()
	p.Manager = mgr
	p.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
		if t.Failed() {
			t.Log(p.log.String())
		}
	})
	t.Cleanup(p.stop)
	return p
}

// submit makes a request, under a name of its own.
func submit(t *testing.T, signer string, r x509.CertificateRequest, change func(*certificatesv1.CertificateSigningRequest), usages ...certificatesv1.KeyUsage) (*certificatesv1.CertificateSigningRequest, crypto.Signer) {
	t.Helper()
	csr, key := certrequesttest.Object(t, fmt.Sprintf("request-%08x", rand.Uint32()), signer, r, usages...)
	if change != nil {
		change(csr)
	}
	csr, err := client.For[*certificatesv1.CertificateSigningRequest](shared.Get(t).Client).Create(t.Context(), csr)
	if err != nil {
		t.Fatal(err)
	}
	return csr, key
}

// decide approves or denies a request.
func decide(t *testing.T, csr *certificatesv1.CertificateSigningRequest, decision certificatesv1.RequestConditionType) {
	t.Helper()
	csr = csr.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: decision, Status: corev1.ConditionTrue, Reason: "Test",
	})
	_, err := client.For[*certificatesv1.CertificateSigningRequest](shared.Get(t).Client).Sub("approval").Update(t.Context(), object.KeyOf(csr), csr)
	if err != nil {
		t.Fatal(err)
	}
}

func hasCertificate(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Certificate) > 0
}

// signed waits for the certificate.
func signed(t *testing.T, p *process, csr *certificatesv1.CertificateSigningRequest) (*x509.Certificate, []byte) {
	t.Helper()
	text := controlplanetest.Await(t, p, object.KeyOf(csr), "the certificate", hasCertificate).Status.Certificate
	block, _ := pem.Decode(text)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, text
}

func TestASignedClientCertificateAuthenticatesAsItsUser(t *testing.T) {
	p := start(t, nil)
	csr, key := submit(t, certificatesv1.KubeAPIServerClientSignerName, certrequesttest.User("jane", "team-a"), func(csr *certificatesv1.CertificateSigningRequest) {
		csr.Spec.ExpirationSeconds = new(int32(3600))
	}, certificatesv1.UsageClientAuth)
	decide(t, csr, certificatesv1.CertificateApproved)
	certificate, text := signed(t, p, csr)
	if lasts := certificate.NotAfter.Sub(certificate.NotBefore); lasts != time.Hour+Backdate {
		t.Errorf("it lasts %s, want %s", lasts, time.Hour+Backdate)
	}

	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	admin := shared.Get(t).Config
	jane, err := client.New(&rest.Config{Host: admin.Host, TLSClientConfig: rest.TLSClientConfig{
		CAData: admin.CAData, CAFile: admin.CAFile,
		CertData: text, KeyData: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	review, err := client.For[*authenticationv1.SelfSubjectReview](jane).Create(t.Context(), &authenticationv1.SelfSubjectReview{})
	if err != nil {
		t.Fatal(err)
	}
	if who := review.Status.UserInfo; who.Username != "jane" || !slices.Contains(who.Groups, "team-a") {
		t.Errorf("the server takes her for %v", who)
	}
}

func TestEverySignerOfKubernetesSigns(t *testing.T) {
	p := start(t, nil)
	serving := certrequesttest.Node("a")
	serving.DNSNames = []string{"a.example"}
	for signer, r := range map[string]struct {
		request x509.CertificateRequest
		usages  []certificatesv1.KeyUsage
	}{
		certificatesv1.KubeAPIServerClientSignerName:        {certrequesttest.User("jane"), certrequesttest.ClientUsages},
		certificatesv1.KubeAPIServerClientKubeletSignerName: {certrequesttest.Node("a"), certrequesttest.ClientUsages},
		certificatesv1.KubeletServingSignerName:             {serving, certrequesttest.ServingUsages},
	} {
		csr, _ := submit(t, signer, r.request, nil, r.usages...)
		decide(t, csr, certificatesv1.CertificateApproved)
		if certificate, _ := signed(t, p, csr); certificate.Subject.String() != r.request.Subject.String() {
			t.Errorf("%s signed for %s, want %s", signer, certificate.Subject, r.request.Subject)
		}
	}

	// legacy-unknown is for requests of a time before signers had names. The server has
	// some of them, and lets no new ones in.
	old, _ := certrequesttest.Object(t, "old", certificatesv1beta1.LegacyUnknownSignerName, certrequesttest.User("jane"), certrequesttest.ClientUsages...)
	_, err := client.For[*certificatesv1.CertificateSigningRequest](shared.Get(t).Client).Create(t.Context(), old)
	if !apierrors.IsInvalid(err) {
		t.Errorf("a new request to %s: %v, want that it is invalid", old.Spec.SignerName, err)
	}
}

func TestARequestThatItsSignerDoesNotSignFailsWithTheReason(t *testing.T) {
	p := start(t, nil)
	csr, _ := submit(t, certificatesv1.KubeletServingSignerName, certrequesttest.Node("a"), nil, certrequesttest.ServingUsages...)
	decide(t, csr, certificatesv1.CertificateApproved)
	isFailed := func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateFailed
	}
	now := controlplanetest.Await(t, p, object.KeyOf(csr), "the condition Failed", func(csr *certificatesv1.CertificateSigningRequest) bool {
		return slices.ContainsFunc(csr.Status.Conditions, isFailed)
	})
	c := now.Status.Conditions[slices.IndexFunc(now.Status.Conditions, isFailed)]
	if c.Status != corev1.ConditionTrue || c.Reason != "SignerValidationFailure" || c.Message != "DNS or IP subjectAltName is required" || c.LastUpdateTime.IsZero() {
		t.Errorf("the condition is %+v", c)
	}
	if hasCertificate(now) {
		t.Error("it has a certificate all the same")
	}
	if text, err := shared.Get(t).Kubectl("get", "csr", csr.Name); err != nil || !strings.Contains(text, "Approved,Failed") {
		t.Errorf("kubectl shows %s (%v), want Approved,Failed", text, err)
	}
}

func TestWhatIsNotApprovedOrHasFailedOrIsForAnotherSignerIsLeftAlone(t *testing.T) {
	own := newPair(t, ellipticKey(t), time.Now().Add(time.Hour), nil)
	p := start(t, map[string]Source{
		certificatesv1.KubeAPIServerClientSignerName: func() (Authority, error) { return ParseAuthority(own.certificate, own.key) },
	})
	jane := certrequesttest.User("jane")
	undecided, _ := submit(t, certificatesv1.KubeAPIServerClientSignerName, jane, nil, certificatesv1.UsageClientAuth)
	denied, _ := submit(t, certificatesv1.KubeAPIServerClientSignerName, jane, nil, certificatesv1.UsageClientAuth)
	decide(t, denied, certificatesv1.CertificateDenied)
	failed, _ := submit(t, certificatesv1.KubeAPIServerClientSignerName, jane, nil, certificatesv1.UsageClientAuth)
	failed.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "Test"}}
	failed, err := client.For[*certificatesv1.CertificateSigningRequest](shared.Get(t).Client).UpdateStatus(t.Context(), failed)
	if err != nil {
		t.Fatal(err)
	}
	decide(t, failed, certificatesv1.CertificateApproved)
	foreign, _ := submit(t, "example.com/mine", jane, nil, certificatesv1.UsageClientAuth)
	decide(t, foreign, certificatesv1.CertificateApproved)
	kubelet, _ := submit(t, certificatesv1.KubeAPIServerClientKubeletSignerName, certrequesttest.Node("a"), nil, certrequesttest.ClientUsages...)
	decide(t, kubelet, certificatesv1.CertificateApproved)

	// What comes after them has been answered, and by the authority that was given.
	last, _ := submit(t, certificatesv1.KubeAPIServerClientSignerName, jane, nil, certificatesv1.UsageClientAuth)
	decide(t, last, certificatesv1.CertificateApproved)
	if certificate, _ := signed(t, p, last); certificate.Issuer.CommonName != "test-ca" {
		t.Errorf("%s signed", certificate.Issuer)
	}
	for what, csr := range map[string]*certificatesv1.CertificateSigningRequest{
		"undecided": undecided, "denied": denied, "failed": failed, "for another signer": foreign, "for a signer without an authority": kubelet,
	} {
		now, err := client.For[*certificatesv1.CertificateSigningRequest](shared.Get(t).Client).Get(t.Context(), object.KeyOf(csr))
		if err != nil || hasCertificate(now) || len(now.Status.Conditions) > 2 {
			t.Errorf("%s: %v, %v", what, now, err)
		}
	}
	p.stop() // a write is seen on the server before its answer is counted
	if n := p.stored.Load(); n != 1 {
		t.Errorf("%d writes, want 1", n)
	}
}

func TestHalfOfARotationIsWaitedForAndTheKeyIsNotInTheLog(t *testing.T) {
	dir := t.TempDir()
	first, second := newPair(t, ellipticKey(t), time.Now().Add(time.Hour), nil), newPair(t, ellipticKey(t), time.Now().Add(2*time.Hour), nil)
	p := start(t, ForAll(Files(write(t, dir, first))))
	write(t, dir, pair{second.certificate, first.key})
	csr, _ := submit(t, certificatesv1.KubeAPIServerClientSignerName, certrequesttest.User("jane"), nil, certificatesv1.UsageClientAuth)
	decide(t, csr, certificatesv1.CertificateApproved)
	for end := time.Now().Add(controlplanetest.Patience); !p.logged("not the one of its certificate"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the log does not say what is wrong")
		}
	}
	write(t, dir, second)
	certificate, _ := signed(t, p, csr)
	a, err := ParseAuthority(second.certificate, second.key)
	if err != nil {
		t.Fatal(err)
	}
	if err := certificate.CheckSignatureFrom(a.certificate); err != nil {
		t.Error(err)
	}
	p.stop()
	for _, line := range slices.Concat(strings.Split(string(first.key), "\n"), strings.Split(string(second.key), "\n")) {
		if line != "" && p.logged(line) {
			t.Errorf("the key is in the log: %s", line)
		}
	}
}

// Controllers that are cut off in the middle of their work, and the next one that takes
// over, give each request one certificate.
func TestControllersThatAreKilledInTheMiddleOfTheirWorkGiveEachRequestOneCertificate(t *testing.T) {
	const requests, lives = 40, 4
	var all []*certificatesv1.CertificateSigningRequest
	var stored []string
	for life := range lives {
		p := start(t, nil)
		for range requests / lives {
			csr, _ := submit(t, certificatesv1.KubeAPIServerClientSignerName, certrequesttest.User("jane"), nil, certificatesv1.UsageClientAuth)
			decide(t, csr, certificatesv1.CertificateApproved)
			all = append(all, csr)
		}
		if life < lives-1 {
			p.dead.Store(true)
		} else {
			for _, csr := range all {
				signed(t, p, csr)
			}
		}
		p.stop()
		stored = append(stored, p.paths...)
	}
	// What was stored while its answer did not come back is not counted: so there may be
	// fewer, and none twice.
	slices.Sort(stored)
	if once := slices.Compact(slices.Clone(stored)); len(once) != len(stored) {
		t.Errorf("%d certificates were stored for %d requests", len(stored), len(once))
	}
}
