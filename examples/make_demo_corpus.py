"""Write the demo corpus of LASCA: own sentences, with two gold annotations of parts of speech and of entities.

    python examples/make_demo_corpus.py [FILE]

The sentences come from the hand-written templates below. A template is a line of items:

    word_TAG            a word with its part of speech (universal tags)
    word_TAG|TAG2       a word two careful people may tag differently: first gold, second gold
    {slot}              an entry of the lexicon; names bring their entity type along
    <ORG:items>         an entity
    <ORG|LOC:items>     an entity the two golds read differently; O for none, `in` for the entities inside it

A line that starts with two blanks continues the one before. Templates with slots are used three times, each time with
other entries; the others once. No sentence was taken from anywhere; people and companies are made up.
Only `random.Random.random` is used, whose numbers are the same in every version of Python.
"""

from __future__ import annotations

import random
import re
import sys
from pathlib import Path

USES = 3
TARGET = Path(__file__).resolve().parents[1] / "src" / "lasca" / "datasets" / "demo" / "corpus.tsv"

FIRST = """Anna Tomás Ingrid Kofi Mei Lars Priya Omar Elena Jack Yuki Fatima Diego Hanne Pavel Chloe Samuel Nadia Marco
Aisha Viktor Rosa Emeka Sofia Daniel Leila Henrik Gwen Rafael Noor Ivan Marta Felix Amara Oskar Lucía"""
LAST = """Lindqvist Okafor Marchetti Tanaka Brennan Novak Haddad Ferreira Castell Dubois Iyer Svensson Kowalski Mbeki
Petrov Hartmann Quiroga Eriksen Amadi Sato Bellini Karim Vance Oyelaran Torres Nakamura Whitlock Jansen Rahimi Costa
Holm Achterberg Delacroix Moreau Ndiaye Pereira Strand Yildiz Zeman Abbott"""
CITIES = """Lisbon Oslo Nairobi Kyoto Bergen Quito Leipzig Tunis Galway Porto Utrecht Montreal Hanoi Tampere Seville
Gdansk Accra Bologna Cardiff Osaka Malmö Valparaíso Antwerp Tallinn Izmir"""
COUNTRIES = """Portugal Norway Kenya Japan Chile Estonia Morocco Ireland Vietnam Canada Ghana Uruguay Finland Croatia
Iceland Peru Denmark Senegal"""
NATIONS = """Portuguese Norwegian Kenyan Japanese Chilean Estonian Moroccan Irish Vietnamese Canadian Ghanaian Finnish
Croatian Icelandic Peruvian Danish Senegalese"""
LANGUAGES = "Portuguese Norwegian Japanese Estonian Finnish Croatian Icelandic Danish Vietnamese Irish Arabic Swahili"
CLUB_CITIES = "Lyon Valencia Bremen Genoa Leeds Braga Odense Toulouse Basel Split Sunderland Parma Almería Zwolle"

LEXICON = {
    "company": """<ORG:Velora_NOUN Foods_NOUN>;<ORG:Nordlys_NOUN Energy_NOUN>;<ORG:Kestrel_NOUN>;<ORG:Brightwater_NOUN>;
<ORG:Hallam_NOUN &_CONJ Sons_NOUN>;<ORG:Tessera_NOUN Bank_NOUN>;<ORG:Orbis_NOUN Rail_NOUN>;<ORG:Quillon_NOUN>;
<ORG:Marlow_NOUN Textiles_NOUN>;<ORG:Solvane_NOUN>;<ORG:Pinecrest_NOUN Airlines_NOUN>;<ORG:Adler_NOUN Robotics_NOUN>;
<ORG:Copperfield_NOUN Media_NOUN>;<ORG:Lumen_NOUN Pharma_NOUN>;<ORG:Ostrava_NOUN Steel_NOUN>""",
    "body": """<ORG:Ministry_NOUN of_ADP Health_NOUN>;<ORG:Central_ADJ|NOUN Bank_NOUN>;<ORG:Court_NOUN of_ADP
Appeal_NOUN>;<ORG:Harbour_NOUN Authority_NOUN>;<ORG:Transport_NOUN Office_NOUN>;<ORG|in:{city} City_NOUN
Council_NOUN>;<ORG:Food_NOUN Standards_NOUN Board_NOUN>;<ORG:Coast_NOUN Guard_NOUN>;<ORG:Electoral_ADJ|NOUN
Commission_NOUN>""",
    "house": """<ORG|in:University_NOUN of_ADP {city}>;<ORG|in:{city} Museum_NOUN of_ADP Design_NOUN>;
<ORG:National_ADJ|NOUN Library_NOUN>;<ORG|LOC:Polar_ADJ|NOUN Centre_NOUN>;<ORG|in:{city} Institute_NOUN>;
<ORG|LOC:Botanical_ADJ|NOUN Garden_NOUN>;<ORG:Marlow_NOUN Academy_NOUN>""",
    "cup": """<MISC:Harvest_NOUN Cup_NOUN>;<MISC:Winter_NOUN Games_NOUN>;<MISC:Coastal_ADJ|NOUN League_NOUN>;
<MISC|in:{city} Open_NOUN|ADJ>;<MISC:Ridgeway_NOUN Trophy_NOUN>;<MISC:Junior_ADJ|NOUN Cup_NOUN>""",
    "fest": """<MISC:Lantern_NOUN Festival_NOUN>;<MISC|O:World_NOUN Book_NOUN Day_NOUN>;<MISC|in:{city} Jazz_NOUN
Week_NOUN>;<MISC:Night_NOUN of_ADP Museums_NOUN>;<MISC|in:{city} Film_NOUN Days_NOUN>;<MISC|O:Midsummer_NOUN
Fair_NOUN>""",
    "race": "<MISC|in:{city} Marathon_NOUN>;<MISC:Two_NUM Lakes_NOUN Run_NOUN|VERB>;<MISC:Ridgeway_NOUN Relay_NOUN>",
    "prize": """<MISC:Northern_ADJ|NOUN Lights_NOUN Prize_NOUN>;<MISC|in:{city} Book_NOUN Prize_NOUN>;
<MISC:Silver_NOUN|ADJ Quill_NOUN>;<MISC|PER:Abbott_NOUN Medal_NOUN>""",
    "work": """<MISC:The_DET Glass_NOUN Orchard_NOUN>;<MISC:Salt_NOUN and_CONJ Thunder_NOUN>;<MISC:Nine_NUM
Bridges_NOUN>;<MISC:A_DET Quiet_ADJ Harbour_NOUN>;<MISC:Running_VERB|NOUN Home_ADV|NOUN>;<MISC:Paper_NOUN Moons_NOUN>;
<MISC:Letters_NOUN to_ADP Nobody_PRON>""",
    "area": """<LOC:Aldmoor_NOUN Valley_NOUN>;<LOC:Cape_NOUN Hollow_NOUN>;<LOC:Upper_ADJ|NOUN Wendland_NOUN>;
<LOC:Serafin_NOUN Heights_NOUN>;<LOC:North_NOUN|ADJ Marsh_NOUN>;<LOC|in:Greater_ADJ|NOUN {city}>""",
    "water": """<LOC:Lake_NOUN Torvik_NOUN>;<LOC:River_NOUN Wend_NOUN>;<LOC|in:{city} Bay_NOUN>;<LOC:Black_ADJ|NOUN
Creek_NOUN>""",
    "place": """<LOC:North_NOUN|ADJ Pier_NOUN>;<LOC:Miller_NOUN Street_NOUN>;<LOC:St_NOUN Brigid_NOUN 's_PRT
Square_NOUN>;<LOC:Old_ADJ Mill_NOUN Bridge_NOUN>;<LOC:Rua_NOUN Nova_NOUN>;<LOC:Castle_NOUN Hill_NOUN>;
<LOC|PER:Lindqvist_NOUN Park_NOUN>;<LOC:Station_NOUN Road_NOUN>""",
    "weekday": "Monday_NOUN;Tuesday_NOUN;Wednesday_NOUN;Thursday_NOUN;Friday_NOUN;Saturday_NOUN;Sunday_NOUN",
    "month": "January_NOUN;March_NOUN;April_NOUN;June_NOUN;August_NOUN;October_NOUN;December_NOUN",
    "n": "two_NUM;three_NUM;four_NUM;six_NUM;nine_NUM;12_NUM;15_NUM;20_NUM;35_NUM;40_NUM;60_NUM;120_NUM;250_NUM",
    "year": "1987_NUM;1994_NUM;2003_NUM;2011_NUM;2016_NUM;2019_NUM;2024_NUM",
    "next": "2027_NUM;2028_NUM;2029_NUM;2030_NUM;2032_NUM",
    "role": """teacher_NOUN;nurse_NOUN;plumber_NOUN;librarian_NOUN;translator_NOUN;baker_NOUN;pilot_NOUN;painter_NOUN;
bus_NOUN driver_NOUN;chemist_NOUN;beekeeper_NOUN;cellist_NOUN;tailor_NOUN;gardener_NOUN""",
    "food": """lentil_NOUN soup_NOUN;rye_NOUN bread_NOUN;mango_NOUN curry_NOUN;plum_NOUN cake_NOUN;fried_VERB|ADJ
rice_NOUN;grilled_VERB|ADJ fish_NOUN;goat_NOUN cheese_NOUN;roast_ADJ|VERB potatoes_NOUN;stuffed_VERB|ADJ peppers_NOUN;
onion_NOUN pie_NOUN;smoked_VERB|ADJ trout_NOUN""",
    "thing": """bicycle_NOUN;umbrella_NOUN;kettle_NOUN;violin_NOUN;laptop_NOUN;lamp_NOUN;suitcase_NOUN;typewriter_NOUN;
washing_VERB|NOUN machine_NOUN;wooden_ADJ chair_NOUN;phone_NOUN;reading_VERB|NOUN lamp_NOUN;tent_NOUN;camera_NOUN""",
    "animal": "cat_NOUN;dog_NOUN;heron_NOUN;goat_NOUN;pony_NOUN;parrot_NOUN;tortoise_NOUN;fox_NOUN;hedgehog_NOUN",
    "mood": """tired_ADJ|VERB;happy_ADJ;worried_ADJ|VERB;calm_ADJ;excited_ADJ|VERB;grumpy_ADJ;surprised_VERB|ADJ;
proud_ADJ;bored_ADJ|VERB;thrilled_VERB|ADJ""",
    "adv": "usually_ADV;seldom_ADV;hardly_ADV ever_ADV;rarely_ADV;often_ADV;nearly_ADV always_ADV",
    "subject": "chemistry_NOUN;history_NOUN;music_NOUN;physics_NOUN;drawing_NOUN|VERB;acting_NOUN|VERB;law_NOUN",
    "handle": """@marta_k_X|NOUN;@the_late_bus_X|NOUN;@oskarruns_X|NOUN;@cityclerk_X|NOUN;@tiny_oven_X|NOUN;
@noor88_X|NOUN""",
    "hash": """#rain_X|NOUN;#matchday_X|NOUN;#lunch_X|NOUN;#help_X|VERB;#mondays_X|NOUN;#running_X|NOUN;#trains_X|NOUN;
#nofilter_X|NOUN;#coffee_X|NOUN;#exams_X|NOUN""",
    "url": "http://lnk.example/a7_X|NOUN;http://lnk.example/q2_X|NOUN;http://pic.example/f9_X|NOUN;http://t.example/3_X|NOUN",
    "emo": ":)_X|.;:(_X|.;<3_X|.;xD_X|.;:D_X|.",
}

NEWS = """
{person} was_VERB elected_VERB|ADJ head_NOUN of_ADP the_DET {body} on_ADP {weekday} ._.
The_DET {body} said_VERB that_ADP|PRON {n} ferries_NOUN would_VERB stay_VERB closed_VERB|ADJ until_ADP {month} ._.
Shares_NOUN of_ADP {company} fell_VERB {n} per_ADP cent_NOUN after_ADP a_DET profit_NOUN warning_NOUN|VERB ._.
{club} beat_VERB {club} {score} in_ADP a_DET hard_ADJ fought_VERB|ADJ match_NOUN on_ADP {weekday} night_NOUN ._.
{club} travel_VERB to_ADP {city} for_ADP the_DET opening_NOUN|ADJ round_NOUN of_ADP the_DET {cup} ._.
{nation} farmers_NOUN blocked_VERB the_DET road_NOUN to_ADP {city} to_PRT|ADP protest_VERB against_ADP milk_NOUN
  prices_NOUN ._.
The_DET {nation} singer_NOUN {person} will_VERB open_VERB|ADJ the_DET {fest} in_ADP {city} ._.
{company} plans_VERB to_PRT|ADP build_VERB a_DET second_ADJ|NUM factory_NOUN near_ADP|ADJ {city} ,_. according_VERB|ADP
  to_ADP {person} ._.
Heavy_ADJ snow_NOUN cut_VERB off_PRT|ADP {n} villages_NOUN in_ADP {area} on_ADP {weekday} ._.
{surname} ,_. {age} ,_. joined_VERB {company} in_ADP {year} and_CONJ has_VERB led_VERB its_PRON|DET research_NOUN
  since_ADP|ADV ._.
Police_NOUN in_ADP {city} are_VERB looking_VERB for_ADP a_DET {role} who_PRON saw_VERB the_DET fire_NOUN ._.
The_DET {body} has_VERB fined_VERB {company} for_ADP dumping_VERB|NOUN waste_NOUN in_ADP {water} ._.
{country} and_CONJ {country} signed_VERB a_DET fishing_NOUN|VERB agreement_NOUN after_ADP {n} years_NOUN of_ADP
  talks_NOUN ._.
Talks_NOUN between_ADP {country} and_CONJ the_DET {body} broke_VERB down_PRT|ADV late_ADV|ADJ on_ADP {weekday} ._.
More_ADJ|ADV than_ADP {n} runners_NOUN from_ADP {country} took_VERB part_NOUN in_ADP the_DET {race} ._.
{person} ,_. a_DET former_ADJ {role} from_ADP {city} ,_. won_VERB the_DET {prize} with_ADP a_DET
  first_ADJ|NUM novel_NOUN ._.
The_DET film_NOUN "_. {work} "_. by_ADP {person} opens_VERB in_ADP {country} this_DET {month} ._.
<in|PER:President_NOUN {surname}> flew_VERB to_ADP {city} to_PRT|ADP meet_VERB {nation} trade_NOUN officials_NOUN ._.
<in|PER:Judge_NOUN {surname}> told_VERB the_DET {body} that_ADP|DET the_DET case_NOUN was_VERB closed_VERB|ADJ ._.
"_. We_PRON are_VERB {mood} but_CONJ not_ADV beaten_VERB|ADJ ,_. "_. said_VERB {surname} after_ADP the_DET
  game_NOUN against_ADP {club} ._.
Unemployment_NOUN in_ADP {country} rose_VERB to_ADP its_PRON|DET highest_ADJ level_NOUN since_ADP {year} ._.
Flights_NOUN from_ADP {city} to_ADP {city} were_VERB delayed_VERB|ADJ by_ADP fog_NOUN ,_. {company} said_VERB ._.
{company} has_VERB bought_VERB the_DET {nation} firm_NOUN {company} for_ADP {n} million_NUM euros_NOUN ._.
A_DET painting_NOUN|VERB missing_VERB|ADJ since_ADP {year} was_VERB found_VERB in_ADP an_DET attic_NOUN in_ADP {city}
  ._.
{city} will_VERB host_VERB the_DET {cup} again_ADV in_ADP {next} ,_. the_DET organisers_NOUN said_VERB ._.
{person} and_CONJ {person} share_VERB|NOUN the_DET lead_NOUN|VERB after_ADP the_DET second_ADJ|NUM day_NOUN of_ADP
  the_DET {cup} ._.
The_DET coach_NOUN of_ADP {club} ,_. {person} ,_. has_VERB signed_VERB until_ADP {next} ._.
Scientists_NOUN at_ADP the_DET {house} have_VERB counted_VERB {n} nests_NOUN around_ADP {water} this_DET spring_NOUN ._.
{country} 's_PRT parliament_NOUN voted_VERB to_PRT|ADP lower_VERB|ADJ the_DET voting_NOUN|VERB age_NOUN ._.
Prices_NOUN rose_VERB sharply_ADV in_ADP {month} ,_. the_DET {body} reported_VERB ,_. led_VERB by_ADP fuel_NOUN ._.
{club} ,_. {n} points_NOUN behind_ADP|ADV ,_. need_VERB a_DET win_NOUN|VERB in_ADP {city} to_PRT|ADP stay_VERB
  up_PRT|ADV ._.
The_DET {nation} embassy_NOUN in_ADP {city} will_VERB close_VERB|ADJ at_ADP noon_NOUN on_ADP {weekday} ._.
Residents_NOUN of_ADP {area} fear_VERB|NOUN that_ADP|DET the_DET new_ADJ depot_NOUN of_ADP {company} will_VERB
  split_VERB
  their_PRON|DET town_NOUN ._.
Former_ADJ {role} {person} died_VERB in_ADP {city} on_ADP {weekday} ,_. aged_VERB|ADJ {old} ._.
{country2} beat_VERB {country2} {score} in_ADP the_DET final_NOUN|ADJ of_ADP the_DET {cup} ._.
{family} opened_VERB its_PRON|DET {n} new_ADJ shops_NOUN in_ADP {city} in_ADP {month} ._.
{capital} said_VERB it_PRON would_VERB not_ADV sign_VERB the_DET treaty_NOUN before_ADP {next} ._.
The_DET {nation} side_NOUN lost_VERB {score} to_ADP {club} in_ADP front_NOUN of_ADP {n} thousand_NUM fans_NOUN ._.
Staff_NOUN at_ADP {family} will_VERB walk_VERB|NOUN out_PRT|ADV on_ADP {weekday} unless_ADP|CONJ pay_NOUN|VERB
  rises_VERB ._.
Water_NOUN levels_NOUN in_ADP {water} have_VERB dropped_VERB {n} centimetres_NOUN since_ADP {month} ._.
The_DET {house} has_VERB received_VERB {n} letters_NOUN written_VERB|ADJ by_ADP the_DET poet_NOUN {person} ._.
{person} of_ADP {country} finished_VERB third_ADV|ADJ in_ADP the_DET {race} ,_. {n} seconds_NOUN behind_ADP {surname}
  ._.
Nobody_PRON was_VERB hurt_VERB|ADJ when_ADV a_DET crane_NOUN fell_VERB onto_ADP an_DET empty_ADJ bus_NOUN ._.
The_DET strike_NOUN entered_VERB its_PRON|DET third_ADJ|NUM week_NOUN with_ADP no_DET end_NOUN in_ADP sight_NOUN ._.
Rescuers_NOUN pulled_VERB a_DET trapped_VERB|ADJ climber_NOUN out_ADP|PRT of_ADP the_DET flooded_VERB|ADJ cave_NOUN ._.
Voters_NOUN are_VERB split_VERB|ADJ over_ADP whether_ADP|CONJ the_DET bridge_NOUN is_VERB worth_ADP|ADJ the_DET
  cost_NOUN ._.
The_DET early_ADJ results_NOUN suggest_VERB that_ADP|PRON fewer_ADJ people_NOUN voted_VERB than_ADP last_ADJ time_NOUN
  ._.
What_PRON|DET caused_VERB the_DET power_NOUN cut_NOUN|VERB is_VERB still_ADV being_VERB looked_VERB into_ADP ._.
Growth_NOUN was_VERB slower_ADJ than_ADP expected_VERB|ADJ ,_. but_CONJ hiring_NOUN|VERB held_VERB up_PRT|ADV well_ADV
  ._.
"""

EVERYDAY = """
My_PRON|DET cousin_NOUN {first} has_VERB worked_VERB as_ADP a_DET {role} in_ADP {city} since_ADP {year} ._.
Could_VERB you_PRON bring_VERB the_DET {thing} back_ADV before_ADP {weekday} ?_.
{first} {adv} eats_VERB {food} ,_. but_CONJ today_NOUN|ADV there_PRON|ADV was_VERB no_DET more_ADJ|NOUN
  left_VERB|ADJ ._.
We_PRON missed_VERB the_DET train_NOUN to_ADP {city} and_CONJ had_VERB to_PRT|ADP wait_VERB {n} minutes_NOUN ._.
The_DET {animal} next_ADV|ADJ door_NOUN is_VERB afraid_ADJ of_ADP our_PRON|DET {animal} ._.
I_PRON bought_VERB this_DET {thing} for_ADP {n} euros_NOUN at_ADP the_DET market_NOUN in_ADP {place} ._.
{person} taught_VERB me_PRON {subject} when_ADV I_PRON lived_VERB in_ADP {country} ._.
They_PRON met_VERB at_ADP the_DET {fest} ,_. and_CONJ {n} months_NOUN later_ADV|ADJ they_PRON were_VERB
  married_VERB|ADJ ._.
Turn_VERB left_ADV|NOUN at_ADP {place} ,_. then_ADV go_VERB straight_ADV|ADJ on_ADV|PRT until_ADP you_PRON see_VERB
  the_DET {role} 's_PRT shop_NOUN ._.
If_ADP|CONJ it_PRON rains_VERB on_ADP {weekday} ,_. we_PRON will_VERB make_VERB {food} inside_ADV|ADP instead_ADV ._.
That_DET|PRON {thing} looks_VERB light_ADJ|NOUN ,_. but_CONJ it_PRON is_VERB not_ADV ._.
He_PRON said_VERB that_ADP|PRON that_PRON|DET was_VERB all_DET|PRON he_PRON knew_VERB about_ADP {first} ._.
Have_VERB you_PRON read_VERB "_. {work} "_. yet_ADV ?_. {first} could_VERB not_ADV put_VERB it_PRON down_PRT|ADV ._.
Our_PRON|DET neighbour_NOUN ,_. a_DET retired_VERB|ADJ {role} ,_. keeps_VERB a_DET {animal} and_CONJ two_NUM hens_NOUN
  ._.
There_PRON|ADV is_VERB {food} in_ADP the_DET fridge_NOUN ,_. so_ADP|ADV help_VERB yourself_PRON ._.
{first} and_CONJ I_PRON walked_VERB along_ADP {water} until_ADP it_PRON got_VERB dark_ADJ ._.
The_DET flat_NOUN|ADJ in_ADP {city} was_VERB cheap_ADJ because_ADP|CONJ the_DET roof_NOUN leaked_VERB ._.
Does_VERB anyone_PRON know_VERB a_DET good_ADJ {role} near_ADP {place} ?_.
After_ADP {n} years_NOUN at_ADP {company} ,_. {surname} went_VERB back_ADV to_ADP studying_VERB|NOUN {subject} ._.
She_PRON speaks_VERB {language} at_ADP home_NOUN and_CONJ {language} at_ADP work_NOUN|VERB ._.
Every_DET {weekday} the_DET {role} from_ADP {place} brings_VERB us_PRON {food} ._.
My_PRON|DET uncle_NOUN drives_VERB a_DET lorry_NOUN for_ADP {company} between_ADP {city} and_CONJ {city} ._.
{first} felt_VERB {mood} after_ADP the_DET {subject} exam_NOUN ,_. and_CONJ so_ADV did_VERB I_PRON ._.
Nobody_PRON told_VERB {first} that_ADP|DET the_DET {fest} had_VERB been_VERB moved_VERB|ADJ to_ADP {month} ._.
When_ADV did_VERB {person} move_VERB from_ADP {country} to_ADP {country} ?_.
The_DET {nation} family_NOUN upstairs_ADV|NOUN has_VERB lent_VERB us_PRON its_PRON|DET {thing} ._.
Please_ADV|VERB leave_VERB the_DET keys_NOUN with_ADP the_DET {role} on_ADP the_DET second_ADJ|NUM floor_NOUN ._.
I_PRON used_VERB|ADJ to_PRT|ADP hate_VERB {food} ,_. but_CONJ {first} cooks_VERB it_PRON well_ADV ._.
Her_PRON|DET {thing} broke_VERB on_ADP the_DET way_NOUN to_ADP the_DET {house} ._.
{surname} still_ADV|ADJ owes_VERB me_PRON a_DET {thing} and_CONJ an_DET apology_NOUN ._.
What_DET|PRON time_NOUN does_VERB the_DET bus_NOUN from_ADP {city} get_VERB in_PRT|ADV on_ADP {weekday} ?_.
Somebody_PRON left_VERB a_DET {thing} on_ADP the_DET bench_NOUN outside_ADP|ADV the_DET {house} ._.
We_PRON rented_VERB a_DET house_NOUN in_ADP {area} ,_. {n} minutes_NOUN from_ADP {water} ._.
{first} says_VERB the_DET {thing} from_ADP {family} is_VERB cheaper_ADJ than_ADP that_DET|PRON one_NOUN|NUM ._.
Grandfather_NOUN swam_VERB across_ADP {water} in_ADP {year} ,_. or_CONJ so_ADV he_PRON says_VERB ._.
My_PRON|DET cousin_NOUN plays_VERB for_ADP {club} and_CONJ lives_VERB in_ADP {city} ._.
The_DET light_NOUN|ADJ in_ADP the_DET hall_NOUN is_VERB broken_VERB|ADJ again_ADV ._.
He_PRON is_VERB as_ADV|ADP stubborn_ADJ as_ADP an_DET old_ADJ mule_NOUN ._.
Leave_VERB the_DET window_NOUN open_ADJ|VERB ,_. it_PRON is_VERB far_ADV too_ADV warm_ADJ in_ADV|ADP here_ADV ._.
The_DET children_NOUN ran_VERB past_ADP|ADV and_CONJ the_DET youngest_ADJ|NOUN fell_VERB over_PRT|ADV ._.
You_PRON had_VERB better_ADV|ADJ ask_VERB first_ADV|ADJ ._.
This_DET soup_NOUN tastes_VERB better_ADJ|ADV cold_ADJ ._.
I_PRON like_VERB|ADP swimming_NOUN|VERB ,_. but_CONJ not_ADV before_ADP breakfast_NOUN ._.
Both_DET|PRON of_ADP them_PRON looked_VERB worn_VERB|ADJ out_PRT|ADV ,_. so_ADP|ADV we_PRON let_VERB them_PRON
  sleep_VERB|NOUN ._.
Long_ADJ|ADV before_ADP the_DET others_NOUN were_VERB up_ADV|PRT ,_. grandmother_NOUN had_VERB baked_VERB the_DET
  bread_NOUN ._.
The_DET green_ADJ one_NOUN|NUM is_VERB mine_PRON ;_. yours_PRON is_VERB upstairs_ADV ._.
All_DET she_PRON wanted_VERB was_VERB a_DET bath_NOUN and_CONJ a_DET long_ADJ sleep_NOUN|VERB ._.
"""

TWEETS = """
{handle} late_ADJ|ADV again_ADV ..._. {company} you_PRON had_VERB one_NUM job_NOUN {hash}
just_ADV saw_VERB {person} buying_VERB {food} in_ADP {city} {emo}
RT_X|NOUN {handle} :_. {club} are_VERB going_VERB to_PRT|ADP win_VERB this_PRON|DET {hash} {url}
{city} you_PRON are_VERB beautiful_ADJ in_ADP {month} {hash} {url}
so_ADV {mood} today_NOUN|ADV ,_. {weekday} needs_VERB to_PRT|ADP end_VERB|NOUN {emo}
anyone_PRON going_VERB to_ADP the_DET {fest} on_ADP {weekday} ?_. {hash}
cant_VERB believe_VERB {surname} left_VERB {club} for_ADP {club} !!!_. {emo}
{handle} thx_NOUN|X for_ADP the_DET {thing} ,_. {first} loves_VERB it_PRON <3_X|.
my_PRON|DET {animal} just_ADV ate_VERB the_DET {food} lol_X|NOUN {hash}
Breaking_VERB|ADJ :_. fire_NOUN at_ADP {company} offices_NOUN in_ADP {city} {url}
{n} hours_NOUN in_ADP the_DET queue_NOUN at_ADP the_DET {body} and_CONJ counting_VERB {hash}
now_ADV playing_VERB :_. "_. {work} "_. {emo} {hash}
{handle} {handle} that_PRON|DET 's_VERB|PRT what_PRON i_PRON said_VERB :D_X|.
Good_ADJ luck_NOUN to_ADP everyone_PRON running_VERB the_DET {race} ,_. see_VERB you_PRON at_ADP {place} !_.
need_VERB|NOUN a_DET {role} in_ADP {city} asap_ADV|X ,_. pls_X|ADV share_VERB {hash}
{company} 's_PRT new_ADJ {thing} is_VERB way_ADV|NOUN too_ADV expensive_ADJ imo_X|ADV
wow_X what_DET|PRON a_DET goal_NOUN by_ADP {surname} !_. {club} {score} {club} {hash}
Day_NOUN {n} without_ADP {food} ..._. send_VERB help_NOUN|VERB {emo}
{first} is_VERB home_ADV|NOUN from_ADP {country} at_ADP last_ADJ|ADV {emo} {url}
who_PRON else_ADV|ADJ hates_VERB {subject} ?_. {hash}
New_ADJ blog_NOUN post_NOUN :_. how_ADV I_PRON learned_VERB {language} in_ADP {n} weeks_NOUN {url}
{handle} dm_NOUN|VERB me_PRON ur_PRON|DET address_NOUN ,_. sending_VERB the_DET {thing} {weekday}
Traffic_NOUN backed_VERB up_PRT|ADV from_ADP {place} to_ADP {place} after_ADP a_DET crash_NOUN {hash}
{person} speaking_VERB at_ADP the_DET {house} right_ADV|ADJ now_ADV ,_. full_ADJ house_NOUN {url}
{country2} vs_ADP|CONJ {country2} tonight_NOUN|ADV ,_. who_PRON is_VERB watching_VERB ?_. {hash}
{capital} is_VERB sleeping_VERB|ADJ on_ADP this_DET|PRON ,_. {handle} {emo}
lost_VERB my_PRON|DET {thing} near_ADP {place} ,_. pls_X|ADV rt_VERB|X {hash}
never_ADV trusting_VERB a_DET weather_NOUN app_NOUN again_ADV ,_. soaked_VERB|ADJ :(_X|.
up_ADV|ADP since_ADP 4_NUM ,_. coffee_NOUN no_DET|ADV longer_ADV working_VERB {hash}
monday_NOUN ?_. already_ADV ?_. nope_X|ADV
OMG_X the_DET ending_NOUN|VERB of_ADP that_DET|PRON show_NOUN ..._. speechless_ADJ
haha_X ok_X|ADJ that_PRON|DET made_VERB my_PRON|DET day_NOUN :)_X|.
Gym_NOUN|VERB then_ADV sleep_NOUN|VERB then_ADV repeat_VERB|NOUN
is_VERB it_PRON just_ADV me_PRON or_CONJ is_VERB the_DET wifi_NOUN down_ADV|ADJ ?_.
"""

Item = tuple[str, str, str, str | None, str | None]
"""Word, part of speech in both golds, entity type in both golds (None = outside)."""


class Lexicon:
    """Draws entries without repeating one before all others of its slot were used."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        names = {
            "first": [f"<PER:{x}_NOUN>" for x in FIRST.split()],
            "surname": [f"<PER:{x}_NOUN>" for x in LAST.split()],
            "city": [f"<LOC:{x}_NOUN>" for x in CITIES.split()],
            "country": [f"<LOC:{x}_NOUN>" for x in COUNTRIES.split()],
            "nation": [f"<MISC:{x}_ADJ>" for x in NATIONS.split()],
            "language": [f"<MISC|O:{x}_NOUN|ADJ>" for x in LANGUAGES.split()],
            "country2": [f"<LOC|ORG:{x}_NOUN>" for x in COUNTRIES.split()],
            "capital": [f"<LOC|ORG:{x}_NOUN>" for x in CITIES.split()],
            "family": [f"<ORG|PER:{x}_NOUN>" for x in LAST.split()[::3]],
            "club": [f"<ORG|LOC:{x}_NOUN>" for x in CLUB_CITIES.split()],
            "score": [f"{a}_NUM -_. {b}_NUM" for a, b in ("21", "30", "10", "32", "20", "41")],
            "age": [f"{x}_NUM" for x in (29, 34, 41, 47, 52, 58)],
            "old": [f"{x}_NUM" for x in (71, 78, 83, 88, 94)],
        }
        others = {slot: [e.replace("\n", " ").strip() for e in text.split(";")] for slot, text in LEXICON.items()}
        self.entries = names | others
        self.decks: dict[str, list[str]] = {}

    def draw(self, slot: str) -> str:
        """Return an entry of the slot; a full name is a first and a last one."""
        if slot == "person":
            first, last = self.draw("first"), self.draw("surname")
            return first.replace(">", " ") + last.removeprefix("<PER:")
        if not self.decks.get(slot):
            self.decks[slot] = sorted(self.entries[slot], key=lambda _: self.random.random())
        return self.decks[slot].pop()


def fill(template: str, lexicon: Lexicon) -> str:
    """Replace the slots of a template, and the slots inside what they were replaced with."""
    while "{" in template:
        template = re.sub(r"\{(\w+)\}", lambda match: lexicon.draw(match[1]), template, count=1)
    return template


def parse(text: str) -> list[list[Item]]:
    """Return the chunks of a filled template: each is an entity or a word outside, as items."""
    chunks: list[list[Item]] = []
    position = 0
    while position < len(text):
        if text[position] == " ":
            position += 1
        elif re.match(r"<(ORG|LOC|PER|MISC|in)[|:]", text[position:]):
            end = closing(text, position)
            kinds, inside = text[position + 1 : end].split(":", maxsplit=1)
            first, _, second = kinds.partition("|")
            chunks += entity(inside, first, second or first)
            position = end + 1
        else:
            end = len(text) if " " not in text[position:] else text.index(" ", position)
            word, tags = text[position:end].rsplit("_", maxsplit=1)
            first, _, second = tags.partition("|")
            chunks.append([(word, first, second or first, None, None)])
            position = end
    return chunks


def closing(text: str, start: int) -> int:
    """Return where the entity that opens at `start` closes (the emoticon <3 opens nothing)."""
    depth = 0
    for i in range(start, len(text)):
        if re.match(r"<(ORG|LOC|PER|MISC|in)[|:]", text[i:]):
            depth += 1
        elif text[i] == ">":
            depth -= 1
            if not depth:
                return i
    raise ValueError(f"an entity does not close: {text[start:]}")


def entity(inside: str, first: str, second: str) -> list[list[Item]]:
    """Return the chunks of an entity: one, unless a gold looks at the entities inside it."""
    parts = parse(inside)
    sides: list[list[tuple[str, int]]] = []
    for kind, at in ((first, 3), (second, 4)):
        column: list[tuple[str, int]] = []
        for number, part in enumerate(parts):
            for item in part:
                own = item[at] if kind == "in" else (None if kind == "O" else kind)
                column.append((own or "", number if kind == "in" else 0))
        sides.append(column)
    words = [item for part in parts for item in part]
    labelled = [(word, pos, pos2, iob(sides[0], i), iob(sides[1], i)) for i, (word, pos, pos2, *_) in enumerate(words)]
    return [labelled]


def iob(column: list[tuple[str, int]], i: int) -> str | None:
    """Return the IOB2 label of an entity's word i: it begins where type or part changes."""
    kind, part = column[i]
    if not kind:
        return None
    kind = kind.split("-")[-1]
    before = (column[i - 1][0].split("-")[-1], column[i - 1][1]) if i else ("", -1)
    return ("I-" if before == (kind, part) else "B-") + kind


def templates(text: str) -> list[str]:
    """Return one template per line; a line that starts with two blanks continues the one before."""
    return text.strip().replace("\n  ", " ").split("\n")


def sentences(seed: int = 20261115) -> list[list[Item]]:
    """Return all sentences: news, everyday life, short messages; the uses of a template lie apart."""
    lexicon = Lexicon(seed)
    found: list[list[Item]] = []
    for text in (NEWS, EVERYDAY, TWEETS):
        for use in range(USES):
            for template in templates(text):
                if use and "{" not in template:
                    continue
                found.append([item for chunk in parse(fill(template, lexicon)) for item in chunk])
    return [capitalised(s) for s in found]


def capitalised(sentence: list[Item]) -> list[Item]:
    """Write the first letter large where the sentence is written with a full stop."""
    if sentence[-1][0] not in (".", "?") or sentence[0][0][0] in "@#":
        return sentence
    word, *rest = sentence[0]
    return [(word[0].upper() + word[1:], *rest), *sentence[1:]]


def main(target: Path) -> None:
    """Write the file: token, two parts of speech, two entity labels; a blank line behind each sentence."""
    rows: list[str] = []
    for sentence in sentences():
        rows += ["\t".join([w, p, p2, e or "O", e2 or "O"]) for w, p, p2, e, e2 in sentence] + [""]
    target.write_text("\n".join(rows) + "\n", encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
