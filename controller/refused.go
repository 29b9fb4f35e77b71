// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/runs"
)

// Codes of the reasons that the loop states itself, for each write that a server refuses. A controller needs no call
// of [Because] for them.
const (
	// RightMissing is the code for a user of the credentials that may not do it.
	RightMissing = "RightMissing"
	// QuotaExceeded is the code for a ResourceQuota that leaves no room.
	QuotaExceeded = "QuotaExceeded"
	// ServiceAccountMissing is the code for a Pod whose ServiceAccount does not exist.
	ServiceAccountMissing = "ServiceAccountMissing"
	// NamespaceTerminating is the code for a namespace that is being deleted or does not exist.
	NamespaceTerminating = "NamespaceTerminating"
	// AdmissionDenied is the code for an admission webhook or policy that denies it.
	AdmissionDenied = "AdmissionDenied"
	// WebhookFailed is the code for an admission webhook that could not be called.
	WebhookFailed = "WebhookFailed"
)

// refusal returns the reason that the error of a write to an object gives, if it is one of
// those that go on until another client acts. Source of the words:
// k8s.io/apiserver/pkg/admission/plugin/resourcequota (checkRequest),
// k8s.io/kubernetes/plugin/pkg/admission/serviceaccount (Admit),
// k8s.io/apiserver/pkg/admission/plugin/webhook/errors (ToStatusErr, ErrCallingWebhook),
// k8s.io/apiserver/pkg/admission/plugin/policy/validating.
func refusal(verb string, of runs.Object, err error) (Reason, bool) {
	text := err.Error()
	does := []any{"verb", verb, "object", of.String()}
	switch {
	case client.LacksRight(err):
		if user := between(text, `User "`, `"`); user != "" {
			return Reason{Code: RightMissing, Text: "the user {user} may not {verb} {object}", Params: With(append(does, "user", user)...), Ends: "the right is granted"}, true
		}
		return Reason{Code: RightMissing, Text: "the credentials may not {verb} {object}", Params: With(does...), Ends: "the right is granted"}, true
	case client.NamespaceGone(err):
		return Reason{Code: NamespaceTerminating, Text: "the namespace {namespace} is being deleted or does not exist, so nothing can be created in it",
			Params: With("namespace", of.Namespace), Ends: "the namespace exists again"}, true
	case apierrors.IsForbidden(err) && strings.Contains(text, "exceeded quota: "):
		quota := between(text, "exceeded quota: ", ",")
		return Reason{Code: QuotaExceeded, Text: "the ResourceQuota {quota} leaves no room to {verb} {object}: requested {requested}, used {used} of {limited}",
			Params: With(append(does, "quota", quota,
				"requested", between(text, "requested: ", ", used: "), "used", between(text, "used: ", ", limited: "), "limited", between(text, "limited: ", " "))...),
			Until: runs.Object{Kind: "ResourceQuota", Namespace: of.Namespace, Name: quota}}, true
	case apierrors.IsForbidden(err) && strings.Contains(text, "error looking up service account "):
		_, account, _ := strings.Cut(between(text, "error looking up service account ", ":"), "/")
		return Reason{Code: ServiceAccountMissing, Text: "the ServiceAccount {account} does not exist", Params: With("account", account),
			Until: runs.Object{Kind: "ServiceAccount", Namespace: of.Namespace, Name: account}}, true
	case strings.Contains(text, "failed calling webhook "):
		return Reason{Code: WebhookFailed, Text: "the admission webhook {webhook} cannot be called, so the server refuses to {verb} {object}",
			Params: With(append(does, "webhook", between(text, `failed calling webhook "`, `"`))...), Ends: "the webhook answers, or its configuration is removed"}, true
	case strings.Contains(text, "admission webhook ") && strings.Contains(text, " denied the request"):
		return Reason{Code: AdmissionDenied, Text: "the admission webhook {webhook} does not allow to {verb} {object}",
			Params: With(append(does, "webhook", between(text, `admission webhook "`, `"`))...), Ends: "the webhook allows it"}, true
	case strings.Contains(text, "ValidatingAdmissionPolicy '"):
		return Reason{Code: AdmissionDenied, Text: "the ValidatingAdmissionPolicy {policy} does not allow to {verb} {object}",
			Params: With(append(does, "policy", between(text, "ValidatingAdmissionPolicy '", "'"))...), Ends: "the policy allows it"}, true
	}
	return Reason{}, false
}

// between returns the part of a text between two others; to its end if the second is not there.
func between(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	part, _, _ := strings.Cut(rest, after)
	return part
}
