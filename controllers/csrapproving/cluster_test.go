// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrapproving

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/certrequesttest"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// The roles that every server has for this.
const (
	mayAsk   = "system:node-bootstrapper"
	mayJoin  = "system:certificates.k8s.io:certificatesigningrequests:nodeclient"
	mayRenew = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient"
)

// process is a controller at work, with the rights that it declares and no others.
type process struct {
	*manager.Manager
	stop func()
	dead atomic.Bool // its connection is cut: no answer reaches it

	mu     sync.Mutex
	sent   []string // the paths of approvals
	stored []string // those that the server has stored
}

var errCut = errors.New("the connection is cut")

func (p *process) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if p.dead.Load() {
			return nil, errCut
		}
		if r.Method == http.MethodPut {
			p.mu.Lock()
			p.sent = append(p.sent, r.URL.Path)
			p.mu.Unlock()
		}
		response, err := next.RoundTrip(r)
		if err == nil && r.Method == http.MethodPut && response.StatusCode == http.StatusOK {
			p.mu.Lock()
			p.stored = append(p.stored, r.URL.Path)
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

func start(t *testing.T) *process {
	t.Helper()
	return startWith(t, Defaults())
}

func startWith(t *testing.T, o Options) *process {
	t.Helper()
	p := &process{}
	config := shared.Get(t).Restricted(t, Rights())
	config.Wrap(p.wrap)
	mgr, err := manager.New(config, manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(mgr, o)
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
	})
	t.Cleanup(p.stop)
	return p
}

// author is somebody who has some roles.
func author(t *testing.T, name string, groups []string, roles ...string) *client.Client {
	t.Helper()
	cluster := shared.Get(t)
	for _, role := range roles {
		bind(t, name, role)
	}
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: groups}
	c, err := client.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func bind(t *testing.T, user, role string) {
	t.Helper()
	_, err := client.For[*rbacv1.ClusterRoleBinding](shared.Get(t).Client).Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("test-%08x", rand.Uint32())},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// submit makes a request in the name of its author. The server's authorizer may not
// have seen yet that it may.
func submit(t *testing.T, author *client.Client, r x509.CertificateRequest) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	csr, _ := certrequesttest.Object(t, fmt.Sprintf("request-%08x", rand.Uint32()), certificatesv1.KubeAPIServerClientKubeletSignerName, r, certrequesttest.ClientUsages...)
	ctx, cancel := context.WithTimeout(t.Context(), controlplanetest.Patience)
	defer cancel()
	for {
		now, err := client.For[*certificatesv1.CertificateSigningRequest](author).Create(ctx, csr)
		if err == nil {
			return now
		}
		if !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}

// approval waits until a request is approved and returns the condition.
func approval(t *testing.T, p *process, csr *certificatesv1.CertificateSigningRequest) certificatesv1.CertificateSigningRequestCondition {
	t.Helper()
	now := controlplanetest.Await(t, p, object.KeyOf(csr), "the approval", func(csr *certificatesv1.CertificateSigningRequest) bool {
		return len(csr.Status.Conditions) > 0
	})
	return now.Status.Conditions[0]
}

func TestAKubeletRenewsItsCertificateByTheRightForItself(t *testing.T) {
	p := start(t)
	node := author(t, "system:node:renews", []string{"system:nodes"}, mayAsk, mayRenew)
	own := submit(t, node, certrequesttest.Node("renews"))
	c := approval(t, p, own)
	if c.Type != certificatesv1.CertificateApproved || c.Status != corev1.ConditionTrue || c.Reason != "AutoApproved" ||
		c.Message != "Auto approving self kubelet client certificate after SubjectAccessReview." || c.LastUpdateTime.IsZero() {
		t.Errorf("the condition is %+v", c)
	}
	// The right is not one to ask in the name of somebody else.
	other := author(t, "system:bootstrap:renews", nil, mayAsk, mayRenew)
	foreign := submit(t, other, certrequesttest.Node("renews"))
	approval(t, p, submit(t, node, certrequesttest.Node("renews")))
	now, err := client.For[*certificatesv1.CertificateSigningRequest](shared.Get(t).Client).Get(t.Context(), object.KeyOf(foreign))
	if err != nil || len(now.Status.Conditions) > 0 {
		t.Errorf("the request in another's name: %v, %v", now, err)
	}
}

func TestANodeJoinsByTheRightToAskInItsName(t *testing.T) {
	p := start(t)
	c := approval(t, p, submit(t, author(t, "system:bootstrap:joins", nil, mayAsk, mayJoin), certrequesttest.Node("joins")))
	if c.Message != "Auto approving kubelet client certificate after SubjectAccessReview." {
		t.Errorf("the condition is %+v", c)
	}
}

func TestARightThatIsGivenLaterApprovesWhatWaits(t *testing.T) {
	p := start(t)
	csr := submit(t, author(t, "system:bootstrap:later", nil, mayAsk), certrequesttest.Node("later"))
	bind(t, "system:bootstrap:later", mayJoin)
	approval(t, p, csr)
}

// decide approves or denies a request, as somebody else does.
func decide(t *testing.T, csr *certificatesv1.CertificateSigningRequest, decision certificatesv1.RequestConditionType) {
	t.Helper()
	csr = csr.DeepCopy()
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: decision, Status: corev1.ConditionTrue, Reason: "Test"}}
	if _, err := client.For[*certificatesv1.CertificateSigningRequest](shared.Get(t).Client).Sub("approval").Update(t.Context(), object.KeyOf(csr), csr); err != nil {
		t.Fatal(err)
	}
}

// answer gives a request a certificate, as a signer does that asks for no approval.
func answer(t *testing.T, csr *certificatesv1.CertificateSigningRequest) {
	t.Helper()
	text, err := os.ReadFile(shared.Get(t).Endpoints().CAFile)
	if err != nil {
		t.Fatal(err)
	}
	csr = csr.DeepCopy()
	csr.Status.Certificate = text
	if _, err := client.For[*certificatesv1.CertificateSigningRequest](shared.Get(t).Client).UpdateStatus(t.Context(), csr); err != nil {
		t.Fatal(err)
	}
}

// The server refuses to approve what was denied, or was approved before, which hides
// whether somebody tried. What is sent is therefore looked at.
func TestWhatWasDecidedOrAnsweredIsNotApproved(t *testing.T) {
	joining := author(t, "system:bootstrap:decided", nil, mayAsk, mayJoin)
	ask := func() *certificatesv1.CertificateSigningRequest {
		return submit(t, joining, certrequesttest.Node("decided"))
	}
	denied, approved, answered := ask(), ask(), ask()
	decide(t, denied, certificatesv1.CertificateDenied)
	decide(t, approved, certificatesv1.CertificateApproved)
	answer(t, answered)
	// With one worker, what comes first has been worked on before what comes later.
	p := startWith(t, Options{Workers: 1})
	var want []string
	for range 2 { // at the second, the first one's own approval has been seen
		csr := ask()
		approval(t, p, csr)
		want = append(want, "/apis/certificates.k8s.io/v1/certificatesigningrequests/"+csr.Name+"/approval")
	}
	p.stop()
	if !slices.Equal(p.sent, want) {
		t.Errorf("approvals were sent to %q, want %q; of the others, %s was denied, %s approved and %s answered",
			p.sent, want, denied.Name, approved.Name, answered.Name)
	}
}

// Controllers that are cut off in the middle of their work, and the next one that takes
// over, approve each request once.
func TestControllersThatAreKilledInTheMiddleOfTheirWorkApproveEachRequestOnce(t *testing.T) {
	const requests, lives = 40, 4
	joining := author(t, "system:bootstrap:restart", nil, mayAsk, mayJoin)
	var all []*certificatesv1.CertificateSigningRequest
	var stored []string
	for life := range lives {
		p := start(t)
		for range requests / lives {
			all = append(all, submit(t, joining, certrequesttest.Node("restart")))
		}
		if life < lives-1 {
			p.dead.Store(true)
		} else {
			for _, csr := range all {
				approval(t, p, csr)
			}
		}
		p.stop()
		stored = append(stored, p.stored...)
	}
	// What was stored while its answer did not come back is not counted: so there may be
	// fewer, and none twice.
	slices.Sort(stored)
	if once := slices.Compact(slices.Clone(stored)); len(once) != len(stored) {
		t.Errorf("%d approvals were stored for %d requests", len(stored), len(once))
	}
}
