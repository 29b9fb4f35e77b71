// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package podlimits

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// rounding says what becomes of the part of a Pod that a percentage can come to.
type rounding bool

const (
	down rounding = false
	up   rounding = true
)

// scale returns the number in a field, or the percentage in it of total. A nil value is 0.
func scale(path *field.Path, value *intstr.IntOrString, total int32, round rounding) (int32, error) {
	switch {
	case value == nil:
		return 0, nil
	case value.Type == intstr.Int && value.IntVal >= 0:
		return value.IntVal, nil
	case value.Type == intstr.String:
		if percent, ok := percentage(value.StrVal); ok {
			return share(percent, total, round), nil
		}
	}
	return 0, fmt.Errorf(`%s is %q; write a number of Pods, such as 1, or a percentage, such as "25%%"`, path, value.String())
}

// percentage reads a number from 0 and a percent sign.
func percentage(text string) (int32, bool) {
	digits, ok := strings.CutSuffix(text, "%")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 31) // no sign
	return int32(n), err == nil
}

// share returns a percentage of total.
func share(percent, total int32, round rounding) int32 {
	hundredths := int64(percent) * int64(max(total, 0))
	if round == up {
		hundredths += 99
	}
	return int32(min(hundredths/100, math.MaxInt32))
}
