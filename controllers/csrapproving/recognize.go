// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrapproving

import (
	"crypto/x509"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/certrequest"
)

// reasonApproved is the reason of the condition Approved, which tools read.
const reasonApproved = "AutoApproved"

// A way is one by which a request can be approved.
type way struct {
	subresource string // of certificatesigningrequests, that one must be allowed to create
	message     string // of the condition
}

// The messages are upstream's.
// Source: k8s.io/kubernetes/pkg/controller/certificates/approver/sarapprove.go.
var (
	renewal = way{"selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."}
	joining = way{"nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."}
)

// waysOf returns the ways that a request can be approved by, the narrower right first.
// None: another approver decides.
func waysOf(csr *certificatesv1.CertificateSigningRequest, parsed *x509.CertificateRequest) []way {
	if csr.Spec.SignerName != certificatesv1.KubeAPIServerClientKubeletSignerName ||
		certrequest.CheckKubeletClient(parsed, csr.Spec.Usages) != nil {
		return nil
	}
	if csr.Spec.Username == parsed.Subject.CommonName {
		return []way{renewal, joining}
	}
	return []way{joining}
}

// question is the review of whether the author of a request has the right that a way
// needs.
func question(csr *certificatesv1.CertificateSigningRequest, w way) *authorizationv1.SubjectAccessReview {
	extra := map[string]authorizationv1.ExtraValue{}
	for name, value := range csr.Spec.Extra {
		extra[name] = authorizationv1.ExtraValue(value)
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: certificatesv1.GroupName, Version: "*", Resource: "certificatesigningrequests",
			Subresource: w.subresource, Verb: "create",
		},
	}}
}

// approve adds the condition. The server adds the time.
func approve(csr *certificatesv1.CertificateSigningRequest, w way) {
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: reasonApproved, Message: w.message,
	})
}

// How soon the rights of an author without the right are reviewed again: upstream's
// longest pause after a failure, and a second so that clocks that differ by less do no
// harm.
const (
	AskFirst = time.Second
	AskLast  = 1000 * time.Second
)

// askAgain returns when to review a request of some age again: when it is twice as old.
func askAgain(age time.Duration) time.Duration { return min(max(age, AskFirst), AskLast) }
