// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrapproving

import (
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/setpoint-io/setpoint/controller"
)

// Codes of the reasons why a request is not approved.
const (
	codeNoRight   = "AuthorHasNoRight"
	codeOthersOwn = "ApprovedByOthers"
)

// undecided returns why a request is neither approved nor denied, after a review of the ways to approve it.
func undecided(csr *certificatesv1.CertificateSigningRequest, ways []way) controller.Reason {
	if len(ways) == 0 {
		return controller.Reason{
			Code: codeOthersOwn, Normal: true, Text: "this controller approves client certificates of kubelets alone, and the request to the signer {signer} is not for one",
			Params: controller.With("signer", csr.Spec.SignerName), Ends: "another controller or a user approves or denies the request",
		}
	}
	var rights []string
	for _, w := range ways {
		rights = append(rights, "certificatesigningrequests/"+w.subresource)
	}
	return controller.Reason{
		Code: codeNoRight, Text: "the author {user} may not create {rights}",
		Params: controller.With("user", csr.Spec.Username, "rights", strings.Join(rights, " or ")),
		Ends:   "the author gets the right, or a user approves or denies the request",
	}
}
