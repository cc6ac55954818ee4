//! Cities and merchants.

#[derive(Debug)]
pub struct City {
    pub name: &'static str,
    pub country: &'static str,
    /// Degrees, to a hundredth.
    pub latitude: f64,
    pub longitude: f64,
    /// Billing currency of its residents; `None` if no card is from there.
    pub currency: &'static str,
}

const fn city(
    name: &'static str,
    country: &'static str,
    latitude: f64,
    longitude: f64,
    currency: &'static str,
) -> City {
    City { name, country, latitude, longitude, currency }
}

/// Home cities of the cards. Coordinates are those of the city halls, rounded.
pub static HOMES: [City; 22] = [
    city("Berlin", "DE", 52.52, 13.41, "EUR"),
    city("Köln", "DE", 50.94, 6.96, "EUR"),
    city("München", "DE", 48.14, 11.58, "EUR"),
    city("Paris", "FR", 48.86, 2.35, "EUR"),
    city("Lyon", "FR", 45.76, 4.84, "EUR"),
    city("Madrid", "ES", 40.42, -3.70, "EUR"),
    city("Roma", "IT", 41.90, 12.50, "EUR"),
    city("Amsterdam", "NL", 52.37, 4.90, "EUR"),
    city("Dublin", "IE", 53.35, -6.26, "EUR"),
    city("London", "GB", 51.51, -0.13, "GBP"),
    city("Manchester", "GB", 53.48, -2.24, "GBP"),
    city("Edinburgh", "GB", 55.95, -3.19, "GBP"),
    city("New York", "US", 40.71, -74.01, "USD"),
    city("Chicago", "US", 41.88, -87.63, "USD"),
    city("Austin", "US", 30.27, -97.74, "USD"),
    city("Seattle", "US", 47.61, -122.33, "USD"),
    city("Denver", "US", 39.74, -104.99, "USD"),
    city("Atlanta", "US", 33.75, -84.39, "USD"),
    city("Boston", "US", 42.36, -71.06, "USD"),
    city("Los Angeles", "US", 34.05, -118.24, "USD"),
    city("Wien", "AT", 48.21, 16.37, "EUR"),
    city("Bruxelles", "BE", 50.85, 4.35, "EUR"),
];

/// Other cities, for trips and for stolen cards.
pub static ELSEWHERE: [City; 18] = [
    city("Lisboa", "PT", 38.72, -9.14, ""),
    city("Athína", "GR", 37.98, 23.73, ""),
    city("İstanbul", "TR", 41.01, 28.98, ""),
    city("Kraków", "PL", 50.06, 19.94, ""),
    city("Stockholm", "SE", 59.33, 18.07, ""),
    city("Bucureşti", "RO", 44.43, 26.10, ""),
    city("Dubai", "AE", 25.20, 55.27, ""),
    city("Singapore", "SG", 1.35, 103.82, ""),
    city("東京", "JP", 35.68, 139.69, ""),
    city("Bangkok", "TH", 13.76, 100.50, ""),
    city("Jakarta", "ID", -6.21, 106.85, ""),
    city("Sydney", "AU", -33.87, 151.21, ""),
    city("Toronto", "CA", 43.65, -79.38, ""),
    city("Ciudad de México", "MX", 19.43, -99.13, ""),
    city("São Paulo", "BR", -23.55, -46.63, ""),
    city("Lagos", "NG", 6.52, 3.38, ""),
    city("Nairobi", "KE", -1.29, 36.82, ""),
    city("Miami", "US", 25.76, -80.19, ""),
];

/// A category of merchants: its name, usual amount and spread, frequency, online share, and
/// merchant names.
#[derive(Debug)]
pub struct Category {
    pub name: &'static str,
    pub usual: f64,
    pub spread: f64,
    pub weight: f64,
    pub online: f64,
    pub noun: &'static str,
}

const fn category(
    name: &'static str,
    usual: f64,
    spread: f64,
    weight: f64,
    online: f64,
    noun: &'static str,
) -> Category {
    Category { name, usual, spread, weight, online, noun }
}

/// Occasional categories.
pub static CATEGORIES: [Category; 18] = [
    category("grocery", 34.0, 0.5, 26.0, 0.08, "market"),
    category("restaurant", 27.0, 0.5, 18.0, 0.12, "kitchen"),
    category("transport", 9.0, 0.5, 14.0, 0.35, "transit"),
    category("fuel", 52.0, 0.3, 8.0, 0.0, "fuel"),
    category("pharmacy", 16.0, 0.5, 6.0, 0.1, "pharmacy"),
    category("clothing", 62.0, 0.6, 6.0, 0.5, "apparel"),
    category("streaming", 11.0, 0.3, 4.0, 1.0, "stream"),
    category("utilities", 78.0, 0.3, 3.0, 1.0, "energy"),
    category("entertainment", 29.0, 0.5, 5.0, 0.5, "events"),
    category("electronics", 110.0, 0.8, 3.0, 0.6, "devices"),
    category("furniture", 160.0, 0.7, 1.2, 0.4, "interiors"),
    category("airline", 240.0, 0.4, 0.5, 1.0, "airways"),
    category("lodging", 130.0, 0.4, 0.6, 0.7, "hotel"),
    category("gaming", 7.0, 0.8, 2.0, 1.0, "games"),
    category("jewelry", 190.0, 0.7, 0.3, 0.3, "jewellers"),
    category("gift_cards", 45.0, 0.5, 0.6, 0.9, "vouchers"),
    category("money_transfer", 120.0, 0.6, 0.4, 1.0, "transfer"),
    category("crypto", 90.0, 0.8, 0.3, 1.0, "exchange"),
];

/// Index of a category by name. Callers pass names of the table only.
pub fn category_of(name: &str) -> u8 {
    let found = CATEGORIES.iter().position(|category| category.name == name);
    found.and_then(|index| u8::try_from(index).ok()).unwrap_or_default()
}

/// First parts of merchant names.
const NAMES: [&str; 12] = [
    "linden",
    "alder",
    "harbour",
    "north",
    "blue-door",
    "corner",
    "meridian",
    "old-mill",
    "sunrise",
    "union",
    "vista",
    "willow",
];

/// A merchant, in a city or online.
#[derive(Clone, Copy, Debug)]
pub struct Merchant {
    category: u8,
    city: Option<&'static City>,
    number: u8,
}

impl Merchant {
    /// Number of merchants per category, in a city and online.
    pub const LOCAL: u8 = 4;
    /// See [`Self::LOCAL`].
    pub const ONLINE: u8 = 12;

    pub fn local(category: u8, city: &'static City, number: u8) -> Self {
        Self { category, city: Some(city), number: number % Self::LOCAL }
    }

    pub fn online(category: u8, number: u8) -> Self {
        Self { category, city: None, number: number % Self::ONLINE }
    }

    pub fn category(&self) -> &'static str {
        CATEGORIES[usize::from(self.category)].name
    }

    pub fn name(&self) -> String {
        let (category, number) =
            (&CATEGORIES[usize::from(self.category)], usize::from(self.number));
        match self.city {
            Some(city) => {
                // Varies by city, so that cities do not share their shops.
                let first = NAMES[(number * 5 + city.name.len()) % NAMES.len()];
                format!(
                    "{first}-{}-{}-{number}",
                    category.noun,
                    city.name.to_lowercase().replace(' ', "-")
                )
            }
            None => format!("{}-{}.example", NAMES[number % NAMES.len()], category.noun),
        }
    }
}
