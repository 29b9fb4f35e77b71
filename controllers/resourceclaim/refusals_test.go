// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// without runs the controller with feature gates off.
func (c *cluster) without(gates ...string) *managertest.Process {
	c.t.Helper()
	d := Descriptor()
	for _, name := range gates {
		i := slices.IndexFunc(d.Gates, func(g controllers.Gate) bool { return g.Name == name })
		if i < 0 {
			c.t.Fatalf("there is no gate %s", name)
		}
		d.Gates[i].Set(false)
	}
	p := managertest.Run(c.t, c.api.Config(), func(m *manager.Manager) (manager.Runnable, error) { return d.New(m) })
	synctest.Wait()
	return p
}

// asking returns a template with a request that is changed.
func asking(name string, change func(*resourcev1.DeviceRequest)) *resourcev1.ResourceClaimTemplate {
	t := template(name)
	requests := &t.Spec.Spec.Devices.Requests
	*requests = append(*requests, *(*requests)[0].DeepCopy())
	(*requests)[1].Name = "second"
	change(&(*requests)[1]) // a refusal must not depend on the place of the request
	return t
}

func TestATemplateThatAsksForAFeatureThatIsOffIsRefused(t *testing.T) {
	admin := func(r *resourcev1.DeviceRequest) { r.Exactly.AdminAccess = new(true) }
	noAdmin := func(r *resourcev1.DeviceRequest) { r.Exactly.AdminAccess = new(false) }
	list := func(r *resourcev1.DeviceRequest) {
		r.Exactly = nil
		r.FirstAvailable = []resourcev1.DeviceSubRequest{{Name: "large", DeviceClassName: "large"}, {Name: "small", DeviceClassName: "small"}}
	}
	const (
		adminOff = "admin access is requested, but the feature is disabled"
		listOff  = "template includes a prioritized list of subrequests, but the feature is disabled"
	)
	for name, test := range map[string]struct {
		gates []string // those that are off
		asks  func(*resourcev1.DeviceRequest)
		why   string // "" if a claim is made
	}{
		"admin access that is off":                   {[]string{"DRAAdminAccess"}, admin, adminOff},
		"admin access that is on":                    {[]string{"DRAPrioritizedList"}, admin, ""},
		"no admin access, which is off":              {[]string{"DRAAdminAccess"}, noAdmin, ""},
		"a prioritized list that is off":             {[]string{"DRAPrioritizedList"}, list, listOff},
		"a prioritized list that is on":              {[]string{"DRAAdminAccess"}, list, ""},
		"a prioritized list, and both gates are off": {[]string{"DRAAdminAccess", "DRAPrioritizedList"}, list, listOff},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				check(t, c.templates.Add(asking("asks", test.asks)))
				c.addTemplate("plain")
				c.addPod("train", "", "dev:asks", "too:plain")
				process := c.without(test.gates...)
				pass(time.Hour)
				var made []string
				claims, err := fakeapi.Objects[*resourcev1.ResourceClaim](c.claims)
				check(t, err)
				for _, claim := range claims {
					made = append(made, claim.Annotations[resourcev1.PodResourceClaimAnnotation])
				}
				if test.why == "" {
					if slices.Sort(made); !slices.Equal(made, []string{"dev", "too"}) || len(c.notes()) > 0 {
						t.Errorf("claims are made for the entries %q, and the Events say %q", made, c.notes())
					}
					return
				}
				if !slices.Equal(made, []string{"too"}) { // the other entries of the Pod get theirs
					t.Errorf("claims are made for the entries %q, want too", made)
				}
				if notes, want := c.notes(), []string{"FailedResourceClaimCreation: PodResourceClaim dev: " + test.why}; !slices.Equal(notes, want) {
					t.Errorf("the Events say %q, want %q", notes, want)
				}
				wantReason(t, process, "ns/train", "TemplateRefused: no claim is made from the ResourceClaimTemplate asks: "+test.why)
				// A template that asks for nothing of that takes its place.
				c.templates.Remove(in("asks"))
				c.addTemplate("asks")
				pass(time.Minute)
				if n := len(c.claims.Keys()); n != 2 {
					t.Errorf("with another template there are %d claims, want 2", n)
				}
			})
		})
	}
}

// The API server refuses a status with more consumers.
func TestAClaimThatIsReservedForAsManyPodsAsItMayBeIsNotReservedForMore(t *testing.T) {
	for name, test := range map[string]struct {
		pods     int
		reserves bool
	}{
		"one less": {resourcev1.ResourceClaimReservedForMaxSize - 1, true},
		"all":      {resourcev1.ResourceClaimReservedForMaxSize, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t)
				check(t, c.claims.Add(&resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "shared"}}))
				var consumers []*corev1.Pod
				for i := range test.pods {
					consumers = append(consumers, c.addPod(fmt.Sprint("user-", i), "n", "dev=shared"))
				}
				c.allocate("shared", consumers...)
				c.addPod("late", "n", "dev=shared")
				process := c.start()
				pass(time.Hour)
				has := func() bool { return slices.Contains(reserved(c.claim("shared")), "late") }
				if test.reserves {
					if !has() || len(process.Reasons("ns/late")) > 0 {
						t.Errorf("the claim is reserved for %d Pods, and the reasons are %q", len(reserved(c.claim("shared"))), process.Reasons("ns/late"))
					}
					return
				}
				if writes := c.writes(); has() || len(writes) > 0 {
					t.Errorf("there are the writes %q, want none", writes)
				}
				wantReason(t, process, "ns/late", "ClaimFullyReserved: the ResourceClaim shared is reserved for 256 Pods, and cannot be for more (until one of these Pods ends)")
				c.end("user-7", corev1.PodSucceeded)
				pass(time.Minute)
				if !has() || len(reserved(c.claim("shared"))) != test.pods || len(process.Reasons("ns/late")) > 0 {
					t.Errorf("after one of the Pods the claim is reserved for %d, for the late one too: %t; the reasons are %q",
						len(reserved(c.claim("shared"))), has(), process.Reasons("ns/late"))
				}
			})
		})
	}
}

// A later version of Kubernetes may have other sources of claims.
func TestAnEntryWithNeitherAClaimNorATemplateIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		c.addTemplate("gpu")
		p := pod("train", "", "too:gpu")
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "dev"})
		check(t, c.pods.Add(p))
		process := c.start()
		pass(time.Hour)
		if claim := c.only("for the other entry"); claim.Annotations[resourcev1.PodResourceClaimAnnotation] != "too" {
			t.Errorf("the claim is of %v", claim.Annotations)
		}
		if s := c.pod("train").Status.ResourceClaimStatuses; len(s) != 1 || s[0].Name != "too" {
			t.Errorf("the status of the Pod names %v", s)
		}
		want := `FailedResourceClaimCreation: PodResourceClaim dev: checking for claim before creating it: ` +
			`pod "train", spec.resourceClaim "dev": none of the supported fields are set`
		if notes := c.notes(); !slices.Equal(notes, []string{want}) {
			t.Errorf("the Events say %q, want %q", notes, want)
		}
		wantReason(t, process, "ns/train", "ClaimSourceUnknown: the entry dev of spec.resourceClaims names neither a claim nor a template")
		if lines := strings.Join(process.Warnings(), "\n"); strings.Contains(lines, "failed") {
			t.Errorf("the log says %q", lines)
		}
	})
}
