// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrapproving

import (
	"crypto/x509"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/certrequest"
	"github.com/setpoint-io/setpoint/internal/certrequesttest"
	"github.com/setpoint-io/setpoint/manager"
)

func TestAKubeletsRequestCanBeApprovedByTheRightsOfItsAuthorAndNoOther(t *testing.T) {
	const kubelet = certificatesv1.KubeAPIServerClientKubeletSignerName
	node := certrequesttest.Node("a")
	named := node
	named.DNSNames = []string{"a"}
	for name, c := range map[string]struct {
		signer, author string
		request        x509.CertificateRequest
		usages         []certificatesv1.KeyUsage
		want           string
	}{
		"its own renewal":     {kubelet, "system:node:a", node, certrequesttest.ClientUsages, "selfnodeclient nodeclient"},
		"a node that joins":   {kubelet, "system:bootstrap:abcdef", node, certrequesttest.ClientUsages, "nodeclient"},
		"in another's name":   {kubelet, "system:node:b", node, certrequesttest.ClientUsages, "nodeclient"},
		"of another signer":   {certificatesv1.KubeAPIServerClientSignerName, "system:node:a", node, certrequesttest.ClientUsages, ""},
		"a serving one":       {certificatesv1.KubeletServingSignerName, "system:node:a", named, certrequesttest.ServingUsages, ""},
		"with another usage":  {kubelet, "system:node:a", node, certrequesttest.ServingUsages, ""},
		"with a DNS name":     {kubelet, "system:node:a", named, certrequesttest.ClientUsages, ""},
		"of no node":          {kubelet, "jane", certrequesttest.User("jane", "system:nodes"), certrequesttest.ClientUsages, ""},
		"with another's name": {kubelet, "system:node:a", certrequesttest.User("system:node:a", "system:masters"), certrequesttest.ClientUsages, ""},
	} {
		t.Run(name, func(t *testing.T) {
			csr, _ := certrequesttest.Object(t, "r", c.signer, c.request, c.usages...)
			csr.Spec.Username = c.author
			parsed, err := certrequest.Parse(csr.Spec.Request)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range waysOf(csr, parsed) {
				got = append(got, w.subresource)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("the ways are %q, want %q", got, c.want)
			}
		})
	}
}

func TestTheServerIsAskedAboutTheAuthorWithAllThatIsKnownOfIt(t *testing.T) {
	csr := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		Username: "jane", UID: "1", Groups: []string{"team-a"}, Extra: map[string]certificatesv1.ExtraValue{"scope": {"x", "y"}},
	}}
	spec := question(csr, joining).Spec
	if spec.User != "jane" || spec.UID != "1" || !slices.Equal(spec.Groups, []string{"team-a"}) || !slices.Equal(spec.Extra["scope"], []string{"x", "y"}) {
		t.Errorf("it asks about %+v", spec)
	}
	want := authorizationv1.ResourceAttributes{Group: "certificates.k8s.io", Version: "*", Resource: "certificatesigningrequests", Subresource: "nodeclient", Verb: "create"}
	if *spec.ResourceAttributes != want {
		t.Errorf("it asks for %+v, want %+v", *spec.ResourceAttributes, want)
	}
}

func TestARightThatIsMissingIsAskedForAgainWheneverTheRequestIsTwiceAsOld(t *testing.T) {
	for age, want := range map[time.Duration]time.Duration{
		-time.Minute: AskFirst, 0: AskFirst, 3 * time.Second: 3 * time.Second, 24 * time.Hour: AskLast,
	} {
		if got := askAgain(age); got != want {
			t.Errorf("at the age of %s it waits %s, want %s", age, got, want)
		}
	}
	// A request that nobody decides on for a day costs this many questions.
	asked, age := 0, time.Duration(0)
	for ; age < 24*time.Hour; age += askAgain(age) {
		asked++
	}
	if asked > 100 {
		t.Errorf("%d questions in a day, want 100 at most", asked)
	}
}

func TestNegativeWorkersAreRefused(t *testing.T) {
	mgr, err := manager.New(&rest.Config{Host: "https://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(mgr, Options{Workers: -1}); err == nil || !strings.Contains(err.Error(), "-1 workers") {
		t.Errorf("New with -1 workers = %v, want an error that says so", err)
	}
}
