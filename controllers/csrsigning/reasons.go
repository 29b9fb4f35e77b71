// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package csrsigning

import (
	"context"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/internal/certrequest"
)

// Codes of the reasons why a request gets no certificate.
const (
	codeNotApproved  = "NotApproved"
	codeSignerAbsent = "SignerNotServed"
)

// because states why a request that waits for a certificate gets none from this controller.
func (r *reconciler) because(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) {
	approved, denied := certrequest.Decided(csr)
	if denied || certrequest.Failed(csr) || len(csr.Status.Certificate) > 0 {
		return // it is answered
	}
	switch {
	case r.authorities[csr.Spec.SignerName] == nil:
		controller.Because(ctx, controller.Reason{
			Code: codeSignerAbsent, Text: "this manager has no certificate authority for the signer {signer}",
			Params: controller.With("signer", csr.Spec.SignerName), Ends: "the program that serves the signer answers",
		})
	case !approved:
		controller.Because(ctx, controller.Reason{
			Code: codeNotApproved, Text: "the request is not approved", Ends: "a controller or a user approves or denies it",
		})
	}
}
