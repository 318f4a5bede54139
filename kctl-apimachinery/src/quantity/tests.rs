//! Tests quantities against the results of Kubernetes.

use super::*;

#[test]
fn quantities_are_printed_in_canonical_form() {
    // Left: the input. Right: the output of `resource.Quantity` of Kubernetes 1.36.
    let cases = [
        ("0", "0"),
        ("0.000", "0"),
        ("1.5", "1500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1000Ki", "1000Ki"),
        ("1000", "1k"),
        ("1e3", "1e3"),
        ("1E", "1E"),
        ("1E3", "1e3"),
        ("12e-1", "1200e-3"),
        ("100m", "100m"),
        ("1500u", "1500u"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("-0.1n", "-1n"),
        ("+5", "5"),
        ("5.", "5"),
        (".5", "500m"),
        ("-1.5Gi", "-1536Mi"),
        ("128974848", "128974848"),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", "9223372036854775808"),
        ("8Ei", "9223372036854775807"),
        ("1e24", "1e24"),
        ("-", "0"),
        ("0.3Ki", "307200m"),
    ];
    for (written, printed) in cases {
        assert_eq!(
            written.parse::<Quantity>().map(|quantity| quantity.to_string()).as_deref(),
            Ok(printed),
            "{written}"
        );
    }
}

#[test]
fn quantity_round_trips_where_it_does_in_kubernetes() {
    let cases = [
        ("+0055e3", "+0055e3"),
        ("0077", "0077"),
        ("566.", "566."),
        ("1203.123456789e3", "1203.123456789e3"),
        ("30.1234567891e10", "30.1234567891e10"),
        ("1.5", "1500m"),
        ("1000", "1k"),
        ("1e2", "100"),
        ("0.125", "125m"),
        ("+3Gi", "+3Gi"),
        ("+8Gi", "8Gi"),
        ("3.Gi", "3.Gi"),
        ("1234567890123456789", "1234567890123456789"),
        ("+1234567890123456789", "1234567890123456789"),
        ("0", "0"),
        ("00", "0"),
    ];
    for (written, back) in cases {
        assert_eq!(reserialize(written).as_deref(), Ok(back), "{written}");
    }
}

#[test]
fn resources_keep_thousandths() {
    for (written, printed) in [
        ("1.50", "1500m"),
        (".5", "500m"),
        ("1.0", "1"),
        ("100000m", "100"),
        ("0.0001", "1m"),
        ("1u", "1m"),
        ("1n", "1m"),
        ("12345678901234567890", "12345678901234567890"),
        ("0.1Gi", "107374182400m"),
        ("1e4", "10e3"),
        ("1e-3", "1e-3"),
        ("-0.0001", "-1m"),
    ] {
        let rounded = written.parse::<Quantity>().unwrap().rounded_up(3);
        assert_eq!(rounded.to_string(), printed, "{written}");
        assert_eq!(printed.parse::<Quantity>().unwrap().to_string(), printed, "a canonical form is its own");
    }
}

#[test]
fn billionths_are_the_finest_step() {
    for (written, printed) in [
        ("0.0001", "100u"),
        ("1e-6", "1e-6"),
        ("0.5n", "1n"),
        ("1.0000000001", "1000000001n"),
        ("-0.0001", "-100u"),
        ("1e-2000000000", "1e-9"),
        ("0.00000000001Ki", "11n"),
    ] {
        assert_eq!(written.parse::<Quantity>().unwrap().to_string(), printed, "{written}");
    }
}

#[test]
fn amounts_beyond_all_bounds_are_compared_and_added() {
    let read = |text: &str| text.parse::<Quantity>().unwrap();
    let ascending = [
        "-1e2000000000",
        "-1e100",
        "-1",
        "-",
        "1e-2000000000",
        "1m",
        "1",
        "1Ei",
        "9Ei",
        "1e36",
        "1e100",
        "1e101",
        "2e2147483647",
    ];
    for pair in ascending.windows(2) {
        assert!(read(pair[0]) < read(pair[1]), "{pair:?}");
    }
    assert_eq!(read("1e-2000000000"), read("1n"));
    assert_eq!(read("0.00000000001"), read("1n"));
    assert_eq!(read("9Ei"), read("9223372036854775807"));
    assert_eq!(read("1e100").minus(read("1")), read("1e100"));
    assert!(read(&"9".repeat(60)) > read("1e59"));
    assert_eq!(read("1e100").to_string(), "10e99");
    assert_eq!(read("1e2147483647").in_steps(3), i128::MAX);
}

#[test]
fn binary_fractions_with_many_digits_round_up() {
    for (written, units) in
        [("1.000000000000000000000000000000000001Ki", 1025), ("0.9999999999999999999999999999Ei", 1 << 60)]
    {
        assert_eq!(written.parse::<Quantity>().unwrap().in_steps(0), units, "{written}");
    }
}

#[test]
fn integers_match_upstream() {
    for (written, integer) in [
        ("2k", Some(2000)),
        ("1Ki", Some(1024)),
        ("1.5", None),
        ("1.0", None),
        ("1Ei", None),
        ("9223372036854775807", None),
        ("1e18", Some(1_000_000_000_000_000_000)),
        ("1e19", None),
    ] {
        assert_eq!(written.parse::<Quantity>().unwrap().as_int64(), integer, "{written}");
    }
}

#[test]
fn values_are_rounded_away_from_zero() {
    for (written, units, millis) in [
        ("1m", 1, 1),
        ("1001m", 2, 1001),
        ("1500u", 1, 2),
        ("-1500m", -2, -1500),
        ("-1500u", -1, -2),
        ("-2500m", -3, -2500),
        ("-2", -2, -2000),
        ("2", 2, 2000),
        ("8Ei", i64::MAX, 0),
        ("10E", 0, 0),
    ] {
        let quantity: Quantity = written.parse().unwrap();
        assert_eq!((quantity.value(), quantity.milli_value()), (units, millis), "{written}");
    }
}

#[test]
fn invalid_quantity_strings_are_rejected_as_in_kubernetes() {
    let cases = [
        ("", QuantityError::FormatWrong),
        ("x", QuantityError::FormatWrong),
        ("1x", QuantityError::FormatWrong),
        ("1 ", QuantityError::FormatWrong),
        ("1.2.3", QuantityError::FormatWrong),
        ("1K", QuantityError::SuffixUnknown),
        ("1mi", QuantityError::SuffixUnknown),
        ("1e", QuantityError::SuffixUnknown),
        ("Pi", QuantityError::NumberMissing),
        ("e-12", QuantityError::NumberMissing),
    ];
    for (written, error) in cases {
        assert_eq!(written.parse::<Quantity>(), Err(error), "{written}");
    }
}

#[test]
fn sum_keeps_format_of_first_nonzero_quantity() {
    for (left, right, sum) in
        [("1Gi", "1000M", "2073741824"), ("0", "1Gi", "1Gi"), ("1", "1Gi", "1073741825"), ("1k", "1Ki", "2024")]
    {
        let parts: Vec<Quantity> = [left, right].iter().map(|part| part.parse().unwrap()).collect();
        assert_eq!(parts[0].plus(parts[1]).to_string(), sum, "{left} + {right}");
    }
}

#[test]
fn approximations_match_upstream() {
    let cases = [
        ("100m", 0.1),
        ("1Gi", 1_073_741_824.0),
        ("1.5G", 1_500_000_000.0),
        ("-2", -2.0),
        ("250n", 2.500_000_000_000_000_4e-7),
    ];
    for (written, expected) in cases {
        #[expect(clippy::float_cmp, reason = "the doubles are the same to the bit")]
        let is_same = written.parse::<Quantity>().unwrap().approximate_float64() == expected;
        assert!(is_same, "{written}");
    }
}

#[test]
fn approximation_of_zero_with_huge_exponent_is_nan() {
    let approximate = |text: &str| text.parse::<Quantity>().unwrap().approximate_float64();
    assert!(approximate("0e400").is_nan());
    assert!(approximate("1e400").is_infinite());
}
